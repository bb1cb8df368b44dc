"""Limits and long texts."""

from pathlib import Path

import pytest
import tokenizers
from edgeembed_runtime import InputError
from edgeembed_runtime.tokenizer import Tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def tokenizer(bundle_path: Path) -> Tokenizer:
    return Tokenizer((bundle_path / "tokenizer.json").read_bytes(), 32, "tokenizer.json")


@pytest.fixture(scope="module")
def reference(bundle_path: Path) -> tokenizers.Tokenizer:
    """The whole text, every time: what the runtime's shortcut must agree with."""
    reference = tokenizers.Tokenizer.from_file(str(bundle_path / "tokenizer.json"))
    reference.no_padding()
    reference.enable_truncation(32)
    return reference


def test_the_empty_text_is_its_special_tokens(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.tokenize("")
    assert (tokens.ids, tokens.truncated) == ([2, 3], False)


def test_a_text_is_truncated_only_beyond_the_limit(tokenizer: Tokenizer) -> None:
    full, beyond = tokenizer.tokenize("cat " * 30), tokenizer.tokenize("cat " * 31)
    assert (len(full.ids), full.truncated) == (32, False)
    assert (len(beyond.ids), beyond.truncated) == (32, True)


@settings(max_examples=150, deadline=None)
@given(
    pieces=st.lists(
        st.sampled_from(["cat", "x" * 40, "y" * 700, " ", "\t", "中", "e\u0301", "!", "the dog"]), max_size=40
    ),
    repeats=st.integers(1, 60),
)
def test_a_long_text_gives_the_tokens_of_the_whole_text(
    tokenizer: Tokenizer, reference: tokenizers.Tokenizer, pieces: list[str], repeats: int
) -> None:
    text = "".join(pieces) * repeats
    tokens, whole = tokenizer.tokenize(text), reference.encode(text)
    assert tokens.ids == whole.ids
    assert tokens.truncated == bool(whole.overflowing)


@pytest.mark.parametrize("unit", ["a", " ", "hello world ", ".", "中", "e\u0301", "\u0301", "\U0001f468\u200d"])
def test_a_megabyte_on_one_line_is_read(tokenizer: Tokenizer, unit: str) -> None:
    tokens = tokenizer.tokenize(unit * (1_000_000 // len(unit.encode())))
    assert 2 <= len(tokens.ids) <= 32


def test_half_a_surrogate_pair_is_named(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match=r"U\+D800 at character 2"):
        tokenizer.tokenize("ab\ud800c")
