"""Long runs of characters: shortened without another token, or cut and told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from edgeembed_runtime import Encoder, TruncationWarning
from edgeembed_runtime.long_texts import make_shortener
from edgeembed_runtime.tokenizer import Tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

Change = Callable[[dict[str, Any]], object]

_LIMIT = 32
_BOUND = 65_536
_ONES = "a7Z.中é\u0301\u1160İΣ \t\n\r\x0b\x85\0\x7f\u200b\u200d\ufeff\u2028\u3000\ufffd\U0001f600["
_GROUPS = ("\r\n", " \n", "\0 ", "\x0b\x0c", "\u200b\xad", "cat", "deadbeef42", "the dog", "[PAD]", "\x85a", "e\u0301")
_RUNS = st.builds(
    lambda unit, count: unit * count,
    st.sampled_from(list(_ONES)) | st.sampled_from(_GROUPS) | st.characters(exclude_categories=["Cs"]),
    st.integers(1, 8) | st.sampled_from([63, 64, 65, 99, 100, 101, 102, 103, 400, 2000]),
)
_TEXTS = st.lists(_RUNS | st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=10).map("".join)

_PIPELINES: dict[str, Change] = {
    "as the encoders in the wheel": lambda t: t.update(added_tokens=[_added("[PAD]", 0), _added("[UNK]", 1)]),
    "texts as they are": lambda t: t.update(normalizer=_bert(clean_text=False, lowercase=False)),
    "accents kept": lambda t: t.update(normalizer=_bert(strip_accents=False)),
    "Chinese in words": lambda t: t.update(normalizer=_bert(handle_chinese_chars=False)),
    "short words": lambda t: t["model"].update(max_input_chars_per_word=5),
    "long words": lambda t: t["model"].update(max_input_chars_per_word=1000),
    "a token of blanks": lambda t: t.update(added_tokens=[_added("\n\n\n", 70)]),
    "a token of letters": lambda t: t.update(added_tokens=[_added("aaa", 70)]),
    "no words": lambda t: t.update(pre_tokenizer=None),
    "no normalizer": lambda t: t.update(normalizer=None),
}


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


def _reference(content: bytes, limit: int = _LIMIT) -> tokenizers.Tokenizer:
    reference = tokenizers.Tokenizer.from_buffer(content)
    reference.no_padding()
    reference.enable_truncation(limit)
    return reference


@settings(max_examples=60, deadline=None)
@given(text=_TEXTS)
def test_shortened_runs_change_no_token(pipeline: bytes, text: str) -> None:
    tokenizer, reference = Tokenizer(pipeline, _LIMIT, "tokenizer.json"), _reference(pipeline)
    short, is_cut = make_shortener(reference, _LIMIT)(text, _BOUND)
    whole = reference.encode(text)
    assert not is_cut
    assert reference.encode(short).ids == whole.ids
    tokens = tokenizer.tokenize(text)
    assert (tokens.ids, tokens.truncated) == (whole.ids, bool(whole.overflowing))
    info = tokenizer.describe(text)
    assert (info.tokens, info.truncated) == (len(whole.ids), bool(whole.overflowing))


@settings(max_examples=30, deadline=None)
@given(text=_TEXTS)
def test_shortened_runs_change_no_token_of_the_encoder_in_the_wheel(shipped: Path, text: str) -> None:
    content = (shipped / "tokenizer.json").read_bytes()
    tokens, whole = Tokenizer(content, 256, "tokenizer.json").tokenize(text), _reference(content, 256).encode(text)
    assert (tokens.ids, tokens.truncated) == (whole.ids, bool(whole.overflowing))


@pytest.mark.parametrize("blank", ["\n", "\r\n", " \t", "\0", "\x0b\x01 ", "\u200b\ufeff", "\u3000"])
@pytest.mark.parametrize("pattern", ["{0}the cat", "the{0} cat", "the cat{0}"])
def test_a_million_blank_characters_anywhere_are_as_few(encoder: Encoder, blank: str, pattern: str) -> None:
    long, short = pattern.format(blank * (1_000_000 // len(blank))), pattern.format(blank)
    (vector, info), (expected, _) = (encoder.encode(text, return_info=True) for text in (long, short))
    assert (vector == expected).all()
    assert not info.truncated


@pytest.mark.parametrize("unit", ["\U0001f600", "a", "\u0301", "7f3a", "\n"])
def test_a_tokenizer_sees_little_of_a_long_run(bundle_path: Path, unit: str) -> None:
    reference = _reference((bundle_path / "tokenizer.json").read_bytes())
    shortened, is_cut = make_shortener(reference, _LIMIT)(unit * 1_000_000, _BOUND)
    assert len(shortened) < 500
    assert not is_cut


@pytest.mark.parametrize("unit", ["\U0001f468\u200d\U0001f469", "e\u0301", "\u0301\u0323"])
def test_what_no_run_explains_is_cut_at_the_bound_and_told(encoder: Encoder, unit: str) -> None:
    text = unit * 100_000
    with pytest.warns(TruncationWarning, match="1 of 1 texts"):
        vector, info = encoder.encode(text + " the cat", return_info=True)
    assert info.truncated
    assert (vector == encoder.encode(text[:_BOUND], on_truncate="ignore")).all()


def test_a_text_below_the_bound_is_read_to_its_end(encoder: Encoder) -> None:
    text = "e\u0301" * 32_000 + " the cat"
    vector, info = encoder.encode(text, return_info=True)
    assert (info.tokens, info.truncated) == (5, False)
    assert (vector == encoder.encode("e\u0301" * 200 + " the cat")).all()
