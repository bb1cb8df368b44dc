"""The WordPiece tokenizer: its tokens are those of the package `tokenizers`."""

import itertools
import json
import lzma
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime import InputError
from edgeembed_runtime.tokenization.tokenizer import Tokenizer, load_tokenizer
from edgeembed_runtime.tokenization.wordpiece import WordPieceTokenizer
from hypothesis import given, settings
from hypothesis import strategies as st

tokenizers = pytest.importorskip("tokenizers", reason="the tokens are compared with those of the package tokenizers")

_TEXTS = Path(__file__).parents[2].parent / "shared" / "data" / "train"
_LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pl", "pt", "ru", "tr")
_LIMIT, _UNLIMITED = 24, 2**20
_CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
# The planes 4 to 13 are empty, 15 and 16 are for private use: of these one in 64.
_IN_USE = [each for each in _CHARACTERS if ord(each) >> 16 in {0, 1, 2, 3, 14} or ord(each) % 64 == 0]
_SETTINGS: dict[str, dict[str, bool | None]] = {
    "uncased": {},
    "cased": {"lowercase": False},
    "accents kept": {"strip_accents": False},
    "accents removed, cased": {"strip_accents": True, "lowercase": False},
    "not cleaned": {"clean_text": False},
    "Chinese characters not separated": {"handle_chinese_chars": False},
    "nothing": dict.fromkeys(("lowercase", "strip_accents", "clean_text", "handle_chinese_chars"), False),
}
# Marks of different combining classes, of which some are not removed with accents, so that NFD changes their order.
_MARKS = "\u0301\u0323\u0345\u0488\u302e\u1b44\u0f71\u0f72\u034f\u0344\U0001d165\U0001d16d\U0001d15e\u0c56\u0948"
_SPECIAL = (
    "[CLS]",
    "[MASK]",
    "[UNK]",
    "[",
    "]",
    "[MA",
    "SK]",
    "<",
    "##",
    "##ing",
    "İ",
    "Ǆ",
    "ﬁ",
    "ß",
    "Σ",
    "\x85",
    "\x0b",
)
_PIECES = st.sampled_from(
    (*_SPECIAL, "the ", "cat", "Línes", "中文", "한국어", "\xad", "“", "—", "x" * 101, "\n", " ", *_MARKS)
)
_ANY = st.lists(_PIECES | st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=30).map("".join)


def _document(bundle: Path) -> dict[str, Any]:
    """Return the tokenizer.json of a bundle, with added tokens and more of the alphabet."""
    document: dict[str, Any] = json.loads((bundle / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = document["model"]["vocab"]
    for token in ("[MASK]", "中", "##文", "é", "##é", "ᄒ", "##ᅡ", "##ᆫ", "İ", "##̇", "ﬁ", "lines", "##\U0001d165", "“"):
        vocabulary.setdefault(token, len(vocabulary))
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    document["added_tokens"] = [
        {"id": vocabulary[content], "content": content, "special": True, **flags, "lstrip": content == "[MASK]"}
        for content in ("[UNK]", "[CLS]", "[MASK]")
    ]
    return document


def _pair(document: dict[str, Any], limit: int, **changed: bool | None) -> tuple[Tokenizer, Any]:
    content = json.dumps({**document, "normalizer": {**document["normalizer"], **changed}}).encode()
    reference = tokenizers.Tokenizer.from_buffer(content)
    reference.no_padding()
    reference.enable_truncation(limit)
    tokenizer = load_tokenizer(content, limit, "tokenizer.json", is_pairs=True)
    assert isinstance(tokenizer, WordPieceTokenizer)
    return tokenizer, reference


@pytest.fixture(scope="module", params=_SETTINGS)
def both(request: pytest.FixtureRequest, bundle_path: Path) -> tuple[Tokenizer, Any]:
    """Return a tokenizer of the runtime and one of the package, with the same settings."""
    return _pair(_document(bundle_path), _LIMIT, **_SETTINGS[request.param])


@pytest.fixture(scope="module", params=_SETTINGS)
def unlimited(request: pytest.FixtureRequest, bundle_path: Path) -> tuple[Tokenizer, Any]:
    return _pair(_document(bundle_path), _UNLIMITED, **_SETTINGS[request.param])


def _check(tokenizer: Tokenizer, reference: Any, text: str) -> None:
    tokens, whole = tokenizer.tokenize(text), reference.encode(text)
    assert tokens == (whole.ids, bool(whole.overflowing), whole.ids.count(reference.token_to_id("[UNK]")))


def _check_characters(tokenizer: Tokenizer, reference: Any, characters: Sequence[str]) -> None:
    """Compare the tokens of characters alone, between letters, and between combining marks."""
    for pattern in ("{0}", "a{0}b", "\u0323{0}\u0301"):
        _check(tokenizer, reference, " ".join(map(pattern.format, characters)))


def test_a_sample_of_code_points_has_the_tokens_of_the_library(unlimited: tuple[Tokenizer, Any]) -> None:
    _check_characters(*unlimited, _CHARACTERS[:0x3400:11])
    _check_characters(*unlimited, _CHARACTERS[::2003])


@pytest.mark.slow
def test_every_code_point_in_use_has_the_tokens_of_the_library(unlimited: tuple[Tokenizer, Any]) -> None:
    for start in range(0, len(_IN_USE), 4096):
        _check_characters(*unlimited, _IN_USE[start : start + 4096])


@settings(max_examples=40, deadline=None)
@given(text=_ANY)
def test_any_text_has_the_tokens_of_the_library(both: tuple[Tokenizer, Any], text: str) -> None:
    _check(*both, text)


@settings(max_examples=40, deadline=None)
@given(first=_ANY, second=_ANY, copies=st.integers(1, 3))
def test_any_pair_has_the_tokens_of_the_library(
    both: tuple[Tokenizer, Any], first: str, second: str, copies: int
) -> None:
    tokenizer, reference = both
    tokens, whole = tokenizer.tokenize((first * copies, second)), reference.encode(first * copies, second)
    assert (tokens.ids, tokens.truncated) == (whole.ids, bool(whole.overflowing))


@settings(max_examples=40, deadline=None)
@given(text=st.text(st.sampled_from("ae" + _MARKS), max_size=40))
def test_combining_marks_are_ordered_as_by_the_library(both: tuple[Tokenizer, Any], text: str) -> None:
    _check(*both, text)


@pytest.mark.parametrize("limit", [4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize(("first", "second"), list(itertools.product([0, 1, 2, 3, 9], repeat=2)))
def test_a_pair_is_truncated_as_by_the_library(bundle_path: Path, limit: int, first: int, second: int) -> None:
    tokenizer, reference = _pair(_document(bundle_path), limit)
    texts = " ".join(["cat"] * first), " ".join(["dog"] * second)
    tokens, whole = tokenizer.tokenize(texts), reference.encode(*texts)
    assert (tokens.ids, tokens.truncated) == (whole.ids, bool(whole.overflowing))


_SEP, _CLS = ["[SEP]", 3], ["[CLS]", 2]


@pytest.mark.parametrize(
    "processor",
    [
        None,
        {"type": "BertProcessing", "sep": _SEP, "cls": _CLS},
        {"type": "RobertaProcessing", "sep": _SEP, "cls": _CLS, "trim_offsets": True, "add_prefix_space": False},
    ],
    ids=["none", "BERT", "RoBERTa"],
)
def test_special_tokens_are_those_of_the_post_processor(bundle_path: Path, processor: dict[str, Any] | None) -> None:
    tokenizer, reference = _pair({**_document(bundle_path), "post_processor": processor}, _LIMIT)
    for texts in (("the cat",), ("the cat", "a dog")):
        tokens = tokenizer.tokenize(texts if len(texts) == 2 else texts[0])
        assert tokens.ids == reference.encode(*texts).ids


def test_a_custom_prefix_and_a_short_limit_of_words_are_respected(bundle_path: Path) -> None:
    document = _document(bundle_path)
    vocabulary = {token.replace("##", "@"): number for token, number in document["model"]["vocab"].items()}
    document["model"].update(vocab=vocabulary, continuing_subword_prefix="@", max_input_chars_per_word=4)
    tokenizer, reference = _pair(document, _LIMIT)
    for text in ("reads", "cats", "file read", "caté", "@s", "CATS cats"):
        _check(tokenizer, reference, text)


@settings(max_examples=40, deadline=None)
@given(text=st.lists(_PIECES, max_size=30).map("".join).filter(lambda text: not set(text) & set(_MARKS)))
def test_offsets_are_those_of_the_library(both: tuple[Tokenizer, Any], text: str) -> None:
    tokenizer, reference = both
    text = text.replace("[MASK]", "")  # the library counts the white space that the token takes
    plain = reference.encode(text, add_special_tokens=False)
    expected = [each for part in (plain, *plain.overflowing) for each in part.offsets]
    assert tokenizer.token_offsets(text) == expected
    whole = reference.encode(text)
    tokens = zip(whole.tokens, whole.offsets, strict=True)
    pieces = [text[start:end] for token, (start, end) in tokens if token == "[UNK]"]  # noqa: S105
    info = tokenizer.describe(text)
    assert (info.tokens, info.truncated) == (len(whole.ids), bool(whole.overflowing))
    assert len(text) > 24 * _LIMIT or list(info.unknown) == pieces  # runs in longer texts are shortened


@pytest.mark.parametrize("cut", range(140, 150))
def test_an_added_token_at_the_end_of_the_first_part_that_is_read_stays_whole(bundle_path: Path, cut: int) -> None:
    tokenizer, reference = _pair(_document(bundle_path), _LIMIT)
    for text in ("the cat " * 50, "cat. " * 50, "中" * 300, "x" * 300):
        _check(tokenizer, reference, text[:cut] + "[MASK] " + text)


def test_a_text_without_spaces_is_read_to_its_end(bundle_path: Path) -> None:
    tokenizer, reference = _pair(_document(bundle_path), _LIMIT)
    for unit in ("-[", "é", "ab-", "คำ", "<", "ab\u200b"):
        _check(tokenizer, reference, unit * 5000)


def test_lone_surrogates_raise_with_their_position(bundle_path: Path) -> None:
    tokenizer, _ = _pair(_document(bundle_path), _LIMIT)
    for call in (tokenizer.tokenize, tokenizer.describe, tokenizer.token_offsets):
        with pytest.raises(InputError, match=r"U\+DFFF at character 4"):
            call("the \udfff")
    with pytest.raises(InputError, match=r"U\+D800 at character 1"):
        tokenizer.tokenize(("cat", "é\ud800"))


def test_many_different_words_stay_in_a_bounded_cache(bundle_path: Path) -> None:
    tokenizer, reference = _pair(_document(bundle_path), _LIMIT)
    assert isinstance(tokenizer, WordPieceTokenizer)
    tokenizer.token_offsets(" ".join(map(str, range(20_000))))
    for number in range(20_000):
        tokenizer.tokenize(str(number))
    assert max(len(tokenizer._ids), len(tokenizer._spans)) <= 2**14
    _check(tokenizer, reference, "the cat 19999")


def test_threads_share_a_tokenizer(bundle_path: Path) -> None:
    tokenizer, reference = _pair(_document(bundle_path), _LIMIT)
    texts = [f"the cat {number} 中 é{number}" for number in range(400)]
    expected = [reference.encode(text).ids for text in texts]
    results: dict[int, list[list[int]]] = {}

    def work(number: int) -> None:
        results[number] = [tokenizer.tokenize(text).ids for text in texts]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results[number] == expected for number in range(4))


@pytest.mark.slow
@pytest.mark.skipif(not _TEXTS.is_dir(), reason=f"needs the sentences in {_TEXTS}")
@pytest.mark.parametrize("language", _LANGUAGES)
def test_sentences_of_ten_languages_have_the_tokens_of_the_library(shipped: Path, language: str) -> None:
    document = json.loads((shipped / "tokenizer.json").read_text(encoding="utf-8"))
    pairs = [_pair(document, 64), _pair(document, 64, **_SETTINGS["nothing"])]
    with lzma.open(_TEXTS / "multilingual" / f"{language}.txt.xz", "rt", encoding="utf-8") as lines:
        for line in itertools.islice(lines, 20_000):
            for tokenizer, reference in pairs:
                _check(tokenizer, reference, line.rstrip("\n"))
