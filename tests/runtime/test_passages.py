"""Splitting texts into passages: limits, coverage, boundaries, overlap."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from edgeembed_runtime import Encoder, InputError
from edgeembed_runtime.index.passages import PassageSettings, PassageSplitter
from hypothesis import given, settings
from hypothesis import strategies as st

_UNITS = [
    "cat ",
    "reads",
    ". ",
    "\n",
    "\n\n",
    "! ",
    "漢字",
    "。",
    "é",
    "e\u0301",
    "x" * 130,
    "\0",
    "\u200b",
    " " * 40,
    "😀",
    "[SEP]",
]
_TEXTS = st.lists(st.builds(lambda unit, count: unit * count, st.sampled_from(_UNITS), st.integers(1, 40)), max_size=12)


def _split(encoder: Encoder, text: str, max_tokens: int | None = None, overlap: int = 0) -> list[str]:
    spans = PassageSplitter(encoder, PassageSettings(max_tokens, overlap)).split(text)
    return [text[start:end] for start, end in spans]


@pytest.mark.parametrize("text", ["", " ", "the cat", " the cat \n", "a b c d e f g h", "\n" * 5000 + "the cat"])
def test_a_text_that_fits_is_one_passage(encoder: Encoder, text: str) -> None:
    assert _split(encoder, text, 10) == [text]


def test_by_default_a_text_that_the_encoder_reads_is_whole_and_others_are_short(
    make_bundle: Callable[..., Path], tmp_path: Path
) -> None:
    encoder = Encoder.load(make_bundle(tmp_path / "long", max_seq_length=200))
    whole, longer = "the cat " * 99, "the cat " * 100
    assert _split(encoder, whole) == [whole]
    assert [len(passage.split()) for passage in _split(encoder, longer)] == [126, 74]


@given(parts=_TEXTS, max_tokens=st.sampled_from([None, 5, 16]), overlap=st.sampled_from([0, 3, 100]))
@settings(max_examples=60, deadline=None)
def test_passages_fit_and_cover_the_text(
    encoder: Encoder, parts: list[str], max_tokens: int | None, overlap: int
) -> None:
    text = "".join(parts)
    spans = PassageSplitter(encoder, PassageSettings(max_tokens, overlap)).split(text)
    if spans == [(0, len(text))]:
        return
    covered: set[int] = set()
    for start, end in spans:
        covered.update(range(start, end))
        assert text[start:end] == text[start:end].strip() != ""
        tokens = encoder.tokenizer.tokenize(text[start:end])
        assert not tokens.truncated
        assert len(tokens.ids) <= (max_tokens or encoder.max_seq_length)
    assert all(position in covered or text[position].isspace() for position in range(len(text)))
    assert all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(spans))
    if not overlap:
        assert all(b <= c for (_, b), (c, _) in itertools.pairwise(spans))


def test_a_passage_ends_with_a_paragraph_before_a_sentence_before_a_word(encoder: Encoder) -> None:
    words = "the cat " * 6 + "the cat"
    assert _split(encoder, f"{words}.\n\na dog. {words} {words}", 20)[0] == f"{words}."
    assert _split(encoder, f"{words}. a dog the {words} {words}", 20)[0] == f"{words}."
    assert _split(encoder, f"{words}\na dog the {words} {words}", 20)[0] == words
    assert _split(encoder, f"{words} the readings {words} {words}", 18)[0] == f"{words} the"


def test_a_passage_is_not_cut_short_for_an_early_sentence(encoder: Encoder) -> None:
    assert _split(encoder, "a dog. " + "the cat " * 20, 20)[0] == "a dog. " + "the cat " * 7 + "the"


def test_a_word_longer_than_a_passage_is_cut(encoder: Encoder) -> None:
    passages = _split(encoder, "qz" * 45, 12)
    assert "".join(passages) == "qz" * 45
    assert len(passages) > 5


def test_passages_overlap_by_whole_sentences_or_words(encoder: Encoder) -> None:
    first, second, *_ = _split(encoder, "the cat a dog the cat a dog. the file. the line. " * 4, 18, 6)
    assert first.endswith("the file. the line.")
    assert second.startswith("the line. the cat")
    first, second, *_ = _split(encoder, "the cat a dog " * 20, 20, 6)
    assert first.split()[-6:] == second.split()[:6] or first.split()[-5:] == second.split()[:5]


def test_special_tokens_and_the_prompt_count(make_bundle: Callable[..., Path], tmp_path: Path) -> None:
    prompted = Encoder.load(make_bundle(tmp_path / "prompted", prompts={"document": "the file the line "}))
    assert prompted.document_prompt == "the file the line "
    for passage in _split(prompted, "the cat " * 50, 12):
        assert len(passage.split()) <= 6
    with pytest.raises(InputError, match="max_tokens is 6, expected more than 6"):
        PassageSplitter(prompted, PassageSettings(6))


def test_a_limit_above_the_encoder_s_is_an_error(encoder: Encoder) -> None:
    with pytest.raises(InputError, match="expected at most"):
        PassageSplitter(encoder, PassageSettings(encoder.max_seq_length + 1))


@pytest.mark.parametrize("arguments", [(0,), (True,), ("8",), (2.0,), (8, -1), (8, 1.5), (8, "2")])
def test_settings_are_checked(arguments: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="expected"):
        PassageSettings(*arguments)


def test_the_number_of_tokenized_characters_is_linear(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    tokenizer = type(encoder.tokenizer)
    for name in ("tokenize", "token_offsets"):

        def counted(self: object, text: str, method: object = getattr(tokenizer, name)) -> object:
            nonlocal read
            read += len(text)
            return method(self, text)  # type: ignore[operator]

        monkeypatch.setattr(tokenizer, name, counted)
    text = " ".join(["the cat reads", "q" * 150, "line.", "\n\n", "cats the"] * 4_000)
    assert len(_split(encoder, text, 32, 8)) > 500
    assert read < 8 * len(text)
