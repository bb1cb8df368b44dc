"""The vocabulary of a WordPiece tokenizer: a mapping as a dict, read from any JSON that a dict is read from."""

import json
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime.tokenization.vocabulary import Vocabulary
from edgeembed_runtime.tokenization.wordpiece_file import read_wordpiece
from hypothesis import given
from hypothesis import strategies as st

_TOKENS = st.text(st.characters(codec=None), max_size=6)


@given(st.lists(_TOKENS, unique=True), st.integers(0, 50), _TOKENS)
def test_it_equals_a_dict(tokens: list[str], cut: int, other: str) -> None:
    expected = {token: row for row, token in enumerate(tokens)}
    parts = [{token: expected[token] for token in part} for part in (tokens[:cut], tokens[cut:])]
    vocabulary = Vocabulary(parts, len(tokens))
    assert list(vocabulary.items()) == list(expected.items())
    assert len(vocabulary) == len(expected)
    assert vocabulary.find(other) == expected.get(other)
    assert vocabulary.lengths == sorted(set(map(len, tokens)))


def test_ids_may_be_in_any_order() -> None:
    parts = [{"a": 0, "b": 1}, {"c": 2**32 - 1}, {"d": 2}]
    assert dict(Vocabulary(parts, 10)) == {"a": 0, "b": 1, "c": 2**32 - 1, "d": 2}


def test_a_token_that_is_given_twice_has_its_last_id() -> None:
    assert Vocabulary([{"a": 0, "b": 1}, {"a": 2}], 3).find("a") == 2


def test_a_token_that_is_missing_raises_a_key_error() -> None:
    with pytest.raises(KeyError, match="cat"):
        Vocabulary([{"dog": 0}], 1)["cat"]


@pytest.mark.parametrize(
    "style", [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"sort_keys": True}]
)
def test_a_file_may_be_written_in_any_style(bundle_path: Path, style: dict[str, Any]) -> None:
    document = _document(bundle_path, [f"word{number}" for number in range(2000)])
    assert _read(json.dumps(document, **style)) == document["model"]["vocab"]


@pytest.mark.parametrize("token", ["5}", "7 }", '3,"', '"vocab":{', '":5,"', "\\", '"', "}", "é", "\u4e2d", "5,\n"])
def test_a_token_may_look_like_json(bundle_path: Path, token: str) -> None:
    around = [f"word{number}" for number in range(500)]
    document = _document(bundle_path, [*around, token, *(f"{word}s" for word in around)])
    assert _read(json.dumps(document)) == document["model"]["vocab"]


def test_a_name_of_another_part_may_be_vocab(bundle_path: Path) -> None:
    document = {"other": {"vocab": {}}, **_document(bundle_path, ["a", "b"])}
    assert _read(json.dumps(document)) == document["model"]["vocab"]
    document = {"other": {"vocab": {"a": 1}}, **_document(bundle_path, ["a", "b"])}
    assert _read(json.dumps(document)) == document["model"]["vocab"]


def _document(bundle: Path, tokens: list[str]) -> dict[str, Any]:
    """Return the content of a bundle's tokenizer.json with more tokens."""
    document: dict[str, Any] = json.loads((bundle / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = document["model"]["vocab"]
    for token in tokens:
        vocabulary.setdefault(token, len(vocabulary))
    return document


def _read(text: str) -> dict[str, int]:
    wordpiece = read_wordpiece(text.encode(), "tokenizer.json")
    assert wordpiece is not None
    return dict(wordpiece.vocabulary)
