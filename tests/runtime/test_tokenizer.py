"""Tokenization: the limit, long texts, and runs of characters that are shortened without changing a token."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime import Encoder, InputError, TruncationWarning
from edgeembed_runtime.tokenization.shortening import make_shortener
from edgeembed_runtime.tokenization.tokenizer import Tokenizer, load_tokenizer
from edgeembed_runtime.tokenization.wordpiece_file import read_wordpiece
from hypothesis import given, settings
from hypothesis import strategies as st

Change = Callable[[dict[str, Any]], object]

_LIMIT = 32
_MAX_CHARACTERS = 65_536
_ONES = "a7Z.中é\u0301\u1160İΣ \t\n\r\x0b\x85\0\x7f\u200b\u200d\ufeff\u2028\u3000\ufffd\U0001f600["
_GROUPS = ("\r\n", " \n", "\0 ", "\x0b\x0c", "\u200b\xad", "cat", "deadbeef42", "the dog", "[PAD]", "\x85a", "e\u0301")
_RUNS = st.builds(
    lambda unit, count: unit * count,
    st.sampled_from(list(_ONES)) | st.sampled_from(_GROUPS) | st.characters(exclude_categories=["Cs"]),
    st.integers(1, 8) | st.sampled_from([63, 64, 65, 99, 100, 101, 102, 103, 400, 2000]),
)
_TEXTS = st.lists(_RUNS | st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=10).map("".join)

_PIPELINES: dict[str, Change] = {
    "built-in encoders": lambda t: t.update(added_tokens=[_added("[PAD]", 0), _added("[UNK]", 1)]),
    "no cleaning, no lowercasing": lambda t: t.update(normalizer=_bert(clean_text=False, lowercase=False)),
    "accents kept": lambda t: t.update(normalizer=_bert(strip_accents=False)),
    "Chinese characters not separated": lambda t: t.update(normalizer=_bert(handle_chinese_chars=False)),
    "short words": lambda t: t["model"].update(max_input_chars_per_word=5),
    "long words": lambda t: t["model"].update(max_input_chars_per_word=1000),
    "added token of blanks": lambda t: t.update(added_tokens=[_added("\n\n\n", 70)]),
    "added token of letters": lambda t: t.update(added_tokens=[_added("aaa", 70)]),
    "no pre-tokenizer": lambda t: t.update(pre_tokenizer=None),
    "no normalizer": lambda t: t.update(normalizer=None),
}


@pytest.fixture(scope="module")
def tokenizer(bundle_path: Path) -> Tokenizer:
    return load_tokenizer((bundle_path / "tokenizer.json").read_bytes(), 32, "tokenizer.json")


@pytest.fixture(scope="module")
def reference(bundle_path: Path, library: Any) -> Any:
    """Return a tokenizer of the library, which reads each text to its end."""
    reference = library.Tokenizer.from_file(str(bundle_path / "tokenizer.json"))
    reference.no_padding()
    reference.enable_truncation(32)
    return reference


def test_empty_text_has_only_special_tokens(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.tokenize("")
    assert (tokens.ids, tokens.truncated) == ([2, 3], False)


def test_text_is_truncated_only_beyond_the_limit(tokenizer: Tokenizer) -> None:
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
def test_long_text_has_the_tokens_of_the_whole_text(
    tokenizer: Tokenizer, reference: Any, pieces: list[str], repeats: int
) -> None:
    text = "".join(pieces) * repeats
    tokens, whole = tokenizer.tokenize(text), reference.encode(text)
    assert tokens.ids == whole.ids
    assert tokens.truncated == bool(whole.overflowing)


@pytest.mark.parametrize("unit", ["a", " ", "hello world ", ".", "中", "e\u0301", "\u0301", "\U0001f468\u200d"])
def test_megabyte_without_line_breaks_is_tokenized(tokenizer: Tokenizer, unit: str) -> None:
    tokens = tokenizer.tokenize(unit * (1_000_000 // len(unit.encode())))
    assert 2 <= len(tokens.ids) <= 32


def test_lone_surrogate_raises_with_its_position(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match=r"U\+D800 at character 2"):
        tokenizer.tokenize("ab\ud800c")


def _bert(**changed: bool | None) -> dict[str, Any]:
    return {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
        **changed,
    }


def _added(content: str, number: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, "special": True, **flags}


@pytest.fixture(scope="module", params=_PIPELINES)
def pipeline(request: pytest.FixtureRequest, bundle_path: Path) -> bytes:
    document = json.loads((bundle_path / "tokenizer.json").read_text(encoding="utf-8"))
    _PIPELINES[request.param](document)
    return json.dumps(document).encode()


def _reference(library: Any, content: bytes, limit: int = _LIMIT) -> Any:
    reference = library.Tokenizer.from_buffer(content)
    reference.no_padding()
    reference.enable_truncation(limit)
    return reference


@settings(max_examples=60, deadline=None)
@given(text=_TEXTS)
def test_shortened_runs_do_not_change_tokens(pipeline: bytes, library: Any, text: str) -> None:
    tokenizer, reference = load_tokenizer(pipeline, _LIMIT, "tokenizer.json"), _reference(library, pipeline)
    whole = reference.encode(text)
    if (wordpiece := read_wordpiece(pipeline, "tokenizer.json")) is not None:
        short, is_cut = make_shortener(wordpiece, _LIMIT)(text, _MAX_CHARACTERS)
        assert not is_cut
        assert reference.encode(short).ids == whole.ids
    tokens = tokenizer.tokenize(text)
    assert (tokens.ids, tokens.truncated) == (whole.ids, bool(whole.overflowing))
    info = tokenizer.describe(text)
    assert (info.tokens, info.truncated) == (len(whole.ids), bool(whole.overflowing))


@settings(max_examples=30, deadline=None)
@given(text=_TEXTS)
def test_shortened_runs_do_not_change_tokens_of_the_built_in_encoder(shipped: Path, library: Any, text: str) -> None:
    content = (shipped / "tokenizer.json").read_bytes()
    tokens, whole = (
        load_tokenizer(content, 256, "tokenizer.json").tokenize(text),
        _reference(library, content, 256).encode(text),
    )
    assert (tokens.ids, tokens.truncated) == (whole.ids, bool(whole.overflowing))


@pytest.mark.parametrize("blank", ["\n", "\r\n", " \t", "\0", "\x0b\x01 ", "\u200b\ufeff", "\u3000"])
@pytest.mark.parametrize("pattern", ["{0}the cat", "the{0} cat", "the cat{0}"])
def test_million_blank_characters_equal_a_few(encoder: Encoder, blank: str, pattern: str) -> None:
    long, short = pattern.format(blank * (1_000_000 // len(blank))), pattern.format(blank)
    (vector, info), (expected, _) = (encoder.encode(text, return_info=True) for text in (long, short))
    assert (vector == expected).all()
    assert not info.truncated


@pytest.mark.parametrize("unit", ["\U0001f600", "a", "\u0301", "7f3a", "\n"])
def test_long_run_is_shortened(bundle_path: Path, unit: str) -> None:
    wordpiece = read_wordpiece((bundle_path / "tokenizer.json").read_bytes(), "tokenizer.json")
    assert wordpiece is not None
    shortened, is_cut = make_shortener(wordpiece, _LIMIT)(unit * 1_000_000, _MAX_CHARACTERS)
    assert len(shortened) < 500
    assert not is_cut


@pytest.mark.parametrize("unit", ["\U0001f468\u200d\U0001f469", "e\u0301", "\u0301\u0323"])
def test_other_long_text_is_cut_at_the_limit_and_reported(encoder: Encoder, unit: str) -> None:
    text = unit * 100_000
    with pytest.warns(TruncationWarning, match="1 of 1 texts"):
        vector, info = encoder.encode(text + " the cat", on_unknown="ignore", return_info=True)
    assert info.truncated
    assert (vector == encoder.encode(text[:_MAX_CHARACTERS], on_truncate="ignore", on_unknown="ignore")).all()


def test_text_below_the_limit_is_read_to_its_end(encoder: Encoder) -> None:
    text = "e\u0301" * 32_000 + " the cat"
    vector, info = encoder.encode(text, return_info=True)
    assert (info.tokens, info.truncated) == (5, False)
    assert (vector == encoder.encode("e\u0301" * 200 + " the cat")).all()


def test_unknown_tokens_are_counted(tokenizer: Tokenizer) -> None:
    assert tokenizer.tokenize("the cat").unknown == 0
    assert tokenizer.tokenize("the 中 cat 中").unknown == 2
    assert tokenizer.tokenize(("the 中", "中")).unknown == 2
    assert tokenizer.tokenize("中 " * 1000).unknown == 30


def test_token_offsets_cover_a_text_beyond_the_limit(tokenizer: Tokenizer) -> None:
    text = "the Cat, " * 1000 + "中"
    offsets = tokenizer.token_offsets(text)
    assert offsets[:3] == [(0, 3), (4, 7), (7, 8)]
    assert len(offsets) == 3001
    assert [text[start:end] for start, end in offsets[-4:]] == ["the", "Cat", ",", "中"]
    assert tokenizer.token_offsets("") == []


def test_token_offsets_of_a_lone_surrogate_raise(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match=r"U\+D800 at character 2"):
        tokenizer.token_offsets("ab\ud800c")
