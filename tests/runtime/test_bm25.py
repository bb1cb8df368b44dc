"""BM25: its formula, its words, and what it needs."""

import logging
import math
import sys
import unicodedata
from typing import Literal

import numpy as np
import pytest
from edgeembed_runtime import MissingExtraError
from edgeembed_runtime.index.bm25 import BM25, words

pytest.importorskip("bm25s")

_TEXTS = ["the cat reads a file", "the dog", "", "a file, a file and one more file", "read the line"]


def _score(query: list[str], document: list[str], documents: list[list[str]]) -> float:
    """Return the score of the formula, with k1 = 1.5 and b = 0.75."""
    average = sum(map(len, documents)) / len(documents)
    score = 0.0
    for word in query:
        containing = sum(word in each for each in documents)
        count = document.count(word)
        idf = math.log(1 + (len(documents) - containing + 0.5) / (containing + 0.5))
        score += idf * count / (count + 1.5 * (1 - 0.75 + 0.75 * len(document) / average))
    return score


@pytest.mark.parametrize("query", ["file", "the cat", "the the file", "a file of the dog"])
def test_scores_are_those_of_the_formula(query: str) -> None:
    documents = [words(text) for text in _TEXTS]
    expected = [_score(words(query), document, documents) for document in documents]
    scores = BM25(_TEXTS).scores(query)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=1e-5)


@pytest.mark.parametrize("query", ["unseen", "", "?!"])
def test_a_query_without_a_known_word_scores_nothing(query: str) -> None:
    assert BM25(_TEXTS).scores(query).tolist() == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("texts", [[], [""], ["?", " "]])
def test_texts_without_words_score_nothing(texts: list[str]) -> None:
    assert BM25(texts).scores("a file").tolist() == [0] * len(texts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't panic!", ["don", "t", "panic"]),
        ("get_close_matches", ["get", "close", "matche"]),
        ("lineCache HTTPServer sha256", ["line", "cache", "linecache", "http", "server", "httpserver", "sha256"]),
        ("queries classes glass bus cats", ["query", "classe", "glass", "bus", "cat"]),
        ("Müller \ufb01le e\u0301te\u0301 ÉTÉ", ["müller", "file", "été", "été"]),
        ("Привет, мир 日本語。", ["привет", "мир", "日本語"]),
        ("\t\0\n", []),
        ("दान दिन ปี ปู", ["दान", "दिन", "ปี", "ปู"]),
        ("שָׁלוֹם ы\u0301ж ọ\u0300rọ\u0300", ["שָׁלוֹם", "ы\u0301ж", "ọ\u0300rọ\u0300"]),
        ("\u0301 a\u0301 _\u0301b", ["á", "b"]),
        ("1\ufe0f\u20e3 I❤\ufe0fNY", ["1", "i", "ny"]),
        ("Wert\u00adpapier data\u2060base می\u200cروم", ["wertpapier", "database", "میروم"]),
        ("a\0b c\x0bd e\x85f", ["ab", "c", "d", "e", "f"]),
        ("data\u200bbase \u200bខ្ញុំ\u200bចង់\u200b", ["data", "base", "database", "ខ្ញុំ", "ចង់", "ខ្ញុំចង់"]),
        ("Straße STRASSE STRAẞE", ["strasse", "strasse", "strasse"]),
        ("İSTANBUL istanbul DIŞARI d\u0131şar\u0131", ["istanbul", "istanbul", "dişari", "dişari"]),
        ("ΌΣΟΣ όσος ᾷ \u0391\u0342\u0345", ["όσοσ", "όσοσ", "ᾶι", "ᾶι"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "invisible", [*"\u00ad\u034f\u200b\u200c\u200d\u200e\u2060\u2064\u3164\ufe0f\ufeff\0", "\U000e0041"]
)
def test_a_word_is_found_in_spite_of_an_invisible_character(invisible: str) -> None:
    with_it = f"a data{invisible}base server"
    assert BM25([with_it, "another document"]).scores("database").tolist()[1] == 0
    assert BM25([with_it, "another document"]).scores("database")[0] > 0
    assert BM25(["the database", "another document"]).scores(with_it.split()[1])[0] > 0


def test_each_word_of_a_script_with_marks_finds_its_own_document() -> None:
    texts = ["दान पुण्य का काम है", "दिन बहुत छोटा है", "ปู ทะเล", "ปี ใหม่"]
    for query, own in (("दान", 0), ("दिन", 1), ("ปู", 2), ("ปี", 3)):
        assert np.flatnonzero(BM25(texts).scores(query)).tolist() == [own]


def test_case_and_composition_of_a_character_change_no_word() -> None:
    forms: list[Literal["NFC", "NFD", "NFKC", "NFKD"]] = ["NFC", "NFD", "NFKC", "NFKD"]
    for character in map(chr, range(0x3000)):
        others = {character.upper(), character.lower(), character.casefold()}
        others |= {unicodedata.normalize(form, character) for form in forms}
        for other in others - {character}:
            assert words(f"é{other}")[-1:] == words(f"é{character}")[-1:], ascii(character)


def test_a_singular_finds_its_plural() -> None:
    assert BM25(["two files", "one box"]).scores("file")[0] > 0


def test_bm25s_does_not_write_to_the_log_of_an_app(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="root"):
        BM25(_TEXTS).scores("file")
    assert caplog.records == []


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'edgeembed-runtime\[hybrid\]'"):
        BM25(_TEXTS)
