"""The share of a text's words that a vocabulary knows."""

import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime import Classifier, Encoder, UnknownTextWarning
from edgeembed_runtime.coverage import VocabularyCoverage, WordTokens
from edgeembed_runtime.tokenization.tokenizer import load_tokenizer

_ENGLISH = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "read", "##ing", "3", ".", "п", "##п", "é", "中", "²", "→"]
_CYRILLIC = "абвгдежзиклмно"


def _count(tokens: list[str], vocabulary: list[str], unknown: str | None = "[UNK]") -> WordTokens:
    ids = {token: token_id for token_id, token in enumerate(vocabulary)}
    coverage = VocabularyCoverage(ids, None if unknown is None else ids[unknown])
    return coverage.count([ids[token] for token in tokens])


def test_special_tokens_and_punctuation_do_not_count() -> None:
    assert _count(["[CLS]", ".", "→", "[SEP]"], _ENGLISH) == (0, 0)
    assert _count(["[CLS]", "read", "##ing", "3", ".", "[SEP]"], _ENGLISH) == (3, 0)


def test_unknown_tokens_and_letters_of_an_unknown_script_are_unknown() -> None:
    assert _count(["cat", "[UNK]"], _ENGLISH) == (2, 1)
    assert _count(["cat", "п", "##п", "中"], _ENGLISH) == (4, 3)
    assert _count(["λ", "##ος"], [*_ENGLISH, "λ", "##ος"]) == (2, 2)


def test_latin_letters_and_digits_are_known() -> None:
    assert _count(["é", "²", "3"], _ENGLISH) == (3, 0)


def test_letters_of_a_script_with_words_are_known() -> None:
    words = ["".join(pair) for pair in itertools.product(_CYRILLIC, repeat=2)]
    assert _count(["п", "##п"], [*_ENGLISH, *words[:99]]) == (2, 2)
    assert _count(["п", "##п"], [*_ENGLISH, *words[:100]]) == (2, 0)


def test_ideographs_are_known_to_a_vocabulary_with_a_thousand_of_them() -> None:
    ideographs = [chr(0x4E00 + i) for i in range(1001) if chr(0x4E00 + i) != "中"]
    assert _count(["中"], [*_ENGLISH, *ideographs[:998]]) == (1, 1)
    assert _count(["中"], [*_ENGLISH, *ideographs[:999]]) == (1, 0)


def test_vocabulary_without_an_unknown_token_is_counted() -> None:
    assert _count(["\u2581", "\u2581cat", "s"], ["\u2581", "\u2581cat", "s"], unknown=None) == (2, 0)


def test_letters_are_counted_beside_a_token_that_is_only_a_mark() -> None:
    assert _count(["\u0120", "\u0120cat", "é"], ["\u0120", "\u0120cat", "é"], unknown=None) == (2, 0)
    assert _count(["п"], ["\u2581", "\u0120", "п"], unknown=None) == (1, 1)


def test_text_is_unknown_from_nine_tenths_of_its_tokens_on() -> None:
    assert [WordTokens(10, unknown).are_unknown for unknown in (8, 9, 10)] == [False, True, True]
    assert not WordTokens(0, 0).are_unknown
    assert [WordTokens(10, 4).known_share, WordTokens(0, 0).known_share] == [pytest.approx(0.6), 1]


@pytest.mark.parametrize("name", ["mini", "nano", "micro"])
@pytest.mark.parametrize(
    "text",
    [
        "怎么烤面包",
        "中国股市今天下跌",
        "今日の株式市場は下落した",
        "빵을 굽는 방법",
        "Как испечь ржаной хлеб",
        "Ψωμί με γιαούρτι",
        "كيف تخبز الخبز",
        "איך לאפות לחם",
        "रोटी कैसे बनाएं",
        "วิธีทำขนมปัง",
        "😀😂🎉",
    ],
)
def test_other_scripts_are_unknown_to_the_built_in_encoders(name: str, text: str, shipped: object) -> None:
    with pytest.warns(UnknownTextWarning, match="1 of 1 texts: the vocabulary knows almost none of their words"):
        _, info = Encoder(name).encode(text, return_info=True)
    assert info.known_share == 0


@pytest.mark.parametrize("name", ["mini", "nano", "micro"])
def test_texts_with_known_words_cause_no_warning(name: str, shipped: object) -> None:
    texts = ["", "!!! →", "12345", "naïve café", "I love 🍞", "Grüße, 世界!", "Привет means hello", "x² + y² = z²"]
    texts += ["Wie backe ich Roggenbrot?", "Cómo hornear pan", "Jak upiec chleb żytni", "Tôi thích bánh mì", "C++ ≠ C#"]
    _, infos = Encoder(name).encode(texts, return_info=True)
    assert min(info.known_share for info in infos) > 0.1


@pytest.mark.parametrize("kind", ["WordPiece", "library"])
@pytest.mark.parametrize("pair", [False, True])
def test_an_unknown_token_around_every_text_is_no_unknown_word(
    make_bundle: Any, make_classifier: Any, rewrite_manifest: Any, tmp_path: Path, kind: str, *, pair: bool
) -> None:
    """Some tokenizers begin and end texts with the token that also stands for unknown words."""
    if kind == "library":
        pytest.importorskip("tokenizers")
    folder = make_classifier(tmp_path / "bundle", is_pairs=True) if pair else make_bundle(tmp_path / "bundle")
    file = folder / "tokenizer.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    for special in document["post_processor"]["special_tokens"].values():
        special["ids"] = [document["model"]["vocab"]["[UNK]"]]
    if kind == "library":
        document["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Lowercase"}]}
    file.write_text(json.dumps(document), encoding="utf-8")
    manifest = json.loads((folder / "edgeembed.json").read_text(encoding="utf-8"))
    rewrite_manifest(folder, **{name: value for name, value in manifest.items() if name != "files"})
    tokens = load_tokenizer(file.read_bytes(), 32, "tokenizer.json", is_pairs=pair)
    given: Any = ("cat", "dog") if pair else "cat"
    assert tokens.tokenize(given).unknown == 0
    assert tokens.tokenize(("cat", "øø") if pair else "cat øø").unknown == 1
    if pair:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Classifier(folder).predict_proba([given, ("", "")])
        return
    encoder = Encoder.load(folder)
    texts = ["cat", "cat øø", ""]
    infos = encoder.encode(texts, return_info=True, on_unknown="error")[1]
    assert [info.unknown for info in infos] == [(), ("øø",), ()]
    assert [info.known_share for info in infos] == [1, 0.5, 1]
