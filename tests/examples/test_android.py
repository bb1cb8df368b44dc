"""The Java tokenizer for Android returns the tokens of the package tokenizers."""

import shutil

import pytest
from edgeembed_runtime import Encoder

from experiments.platforms.java_tokenizer import count_differences, java_tokens

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("javac"), reason="needs a JDK: apt-get install default-jdk-headless"),
]
_BLOCKS = [range(0x20, 0x378), range(0x400, 0x483), range(0x1E00, 0x2028), range(0x4E00, 0x4E80), range(0xAC00, 0xAC80)]
_TEXTS = [
    "",
    "How do I open a file? It's 3.14 + e-mail@example.com <b>",
    "Zürich, naïve café: 42 €",
    "Türkçe için güzel ışık İstanbul'da",  # noqa: RUF001 - Turkish
    "Zażółć gęślą jaźń ΑΣ",
    "Согласно летописям, Ёлка",
    "שָׁלוֹם عَرَبِيّ 한국어 日本語 が 𠀀𝔘",
    "zero\u200bwidth\u00a0space\u2003tab\tcontrol\x01\ufffd",
    "one [MASK] two[SEP]three [CLS [mask]",
    "a" * 99 + " " + "a" * 100 + " " + "a" * 101,
    "word " * 400,
]


@pytest.mark.parametrize("name", ["mini", "nano", "micro"])
def test_tokens_are_those_of_tokenizers(name: str, sentences: list[str]) -> None:
    characters = [chr(code) for block in _BLOCKS for code in block]
    texts = [*_TEXTS, *sentences, *(f"a{character}b {character}" for character in characters)]
    assert count_differences(Encoder(name).bundle, texts) == 0


def test_long_texts_end_with_the_separator() -> None:
    bundle = Encoder("nano").bundle
    (ids,) = java_tokens(bundle, ["word " * 1000])
    assert len(ids) == bundle.max_seq_length
    assert ids[-1] == java_tokens(bundle, [""])[0][-1]
