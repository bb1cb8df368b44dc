"""Tasks across languages: similarity, retrieval, bitext, their means and tables."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.encoders import CachingEncoder
from edgeembed.evaluation.evaluate import evaluate
from edgeembed.evaluation.language_pairs import choose_language_pairs, is_monolingual
from edgeembed.evaluation.task import EvaluationTask
from edgeembed.evaluation.tasks.bitext import Bitext, read_bitext, score_bitext
from edgeembed.evaluation.tasks.cross_lingual_retrieval import (
    CrossLingualRetrieval,
    read_cross_lingual_retrieval,
    score_cross_lingual_retrieval,
)
from edgeembed.evaluation.tasks.cross_lingual_sts import (
    CrossLingualSTS,
    read_cross_lingual_sts,
    score_cross_lingual_sts,
)
from edgeembed.evaluation.tasks.retrieval import Retrieval

from .conftest import NameEncoders


class _Angles:
    """An encoder that looks up two-dimensional embeddings by angle in degrees and records the texts.

    Queries are rotated by `turned` degrees.
    """

    def __init__(self, turned: float = 0, **degrees: float) -> None:
        self.degrees, self.turned = degrees, turned
        self.texts: list[str] = []

    def encode(self, texts: list[str], /, *, batch_size: int = 32, turned: float = 0) -> Any:  # noqa: ARG002
        self.texts += texts
        angles = np.radians([self.degrees[text] + turned for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def encode_query(self, texts: list[str], /, *, batch_size: int = 32) -> Any:
        return self.encode(texts, batch_size=batch_size, turned=self.turned)

    encode_document = encode


GERMAN = ("rot\tblau\t4", "rot\tgelb\t2", "rot\trosa\t1")
ENGLISH = ("red\tblue\t4", "red\tyellow\t2", "red\tpink\t1")
COLORS = _Angles(rot=0, blau=10, gelb=20, rosa=30, red=0, blue=50, yellow=40, pink=60)


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def translated(tmp_path: Path) -> Path:
    folder = tmp_path / "mt"
    for language, rows in (("de", GERMAN), ("en", ENGLISH)):
        write(folder / language / "test.tsv", "sentence1\tsentence2\tscore", *rows)
    return folder


def test_the_default_pairs_are_those_with_english() -> None:
    where, languages = Path("set"), ["fr", "en", "de"]
    assert list(choose_language_pairs(where, languages, (), both_directions=False)) == [
        "de-de", "en-en", "fr-fr", "de-en", "fr-en",
    ]  # fmt: skip
    assert list(choose_language_pairs(where, languages, (), both_directions=True))[3:] == [
        "de-en",
        "en-de",
        "en-fr",
        "fr-en",
    ]
    assert choose_language_pairs(where, languages, ("fr-de",), both_directions=False) == {"fr-de": ("fr", "de")}


def test_without_english_all_languages_are_paired() -> None:
    found = choose_language_pairs(Path("set"), ["fr", "de", "it"], (), both_directions=False)
    assert list(found) == ["de-de", "fr-fr", "it-it", "de-fr", "de-it", "fr-it"]
    assert len(choose_language_pairs(Path("set"), ["fr", "de", "it"], (), both_directions=True)) == 9


def test_a_pair_with_an_unknown_language_is_an_error() -> None:
    with pytest.raises(InputError, match="set has no pair de-pl; expected two of de, en"):
        choose_language_pairs(Path("set"), ["en", "de"], ("de-en", "de-pl"), both_directions=False)


@pytest.mark.parametrize(
    ("name", "within"),
    [("es-es", True), ("es-es-wmt", True), ("es-en", False), ("es-en-wmt", False), ("zh-Hant-zh-Hant", True)],
)
def test_a_pair_is_monolingual_or_cross_lingual(name: str, within: bool) -> None:
    assert is_monolingual(name) is within


def test_translated_rows_are_paired_across_languages(translated: Path) -> None:
    pairs = read_cross_lingual_sts(f"{translated}#de-en,en-de").pairs
    assert (pairs["de-en"].first[0], pairs["de-en"].second) == ("rot", ["blue", "yellow", "pink"])
    assert (pairs["en-de"].first[0], pairs["en-de"].second) == ("red", ["blau", "gelb", "rosa"])
    assert pairs["de-en"].scores.tolist() == [4, 2, 1]


def test_cross_lingual_sts_equals_the_hand_computed_values(translated: Path) -> None:
    scores = score_cross_lingual_sts(COLORS, read_cross_lingual_sts(translated))
    found = {score.task: score.value for score in scores}
    # German cosines are in the order of the scores. Of English ones the first two are swapped: 1 - 6 * 2 / (3 * 8).
    assert found == pytest.approx(
        {
            "mt, de-de": 100, "mt, en-en": 50, "mt, de-en": 50, "mt, within": 75, "mt, across": 50,
            "mt, average": 200 / 3,
        }
    )  # fmt: skip
    assert scores[-1].items == 9


def test_each_distinct_sentence_is_encoded_once(translated: Path) -> None:
    encoder = _Angles(**COLORS.degrees)
    score_cross_lingual_sts(encoder, read_cross_lingual_sts(translated))
    assert sorted(encoder.texts) == sorted(encoder.degrees)


def test_a_caching_encoder_returns_the_embeddings_of_its_encoder() -> None:
    encoder = _Angles(turned=90, a=10, b=20)
    caching = CachingEncoder(encoder)
    caching.encode_query(["b"])
    np.testing.assert_array_equal(caching.encode_query(["a", "b", "a"]), encoder.encode_query(["a", "b", "a"]))
    np.testing.assert_array_equal(caching.encode_document(["a"]), encoder.encode(["a"]))
    symmetric = CachingEncoder(encoder, symmetric=True)
    np.testing.assert_array_equal(symmetric.encode_query(["a"]), encoder.encode(["a"]))


def test_one_file_per_language_pair_is_read(tmp_path: Path) -> None:
    for name in ("de-de", "de-en", "de-en-news"):
        write(tmp_path / "sts" / f"{name}.tsv", "sentence1\tsentence2\tscore", *GERMAN)
    found = read_cross_lingual_sts(tmp_path / "sts")
    assert list(found.pairs) == ["de-de", "de-en", "de-en-news"]
    assert list(read_cross_lingual_sts(f"{tmp_path / 'sts'}#de-en-news").pairs) == ["de-en-news"]
    with pytest.raises(InputError, match="has no pair fr-en; expected some of de-de, de-en, de-en-news"):
        read_cross_lingual_sts(f"{tmp_path / 'sts'}#fr-en")


def test_pairs_of_one_kind_have_one_mean(translated: Path) -> None:
    scores = score_cross_lingual_sts(COLORS, read_cross_lingual_sts(f"{translated}#de-en,en-de"))
    assert [score.task for score in scores] == ["mt, de-en", "mt, en-de", "mt, average"]


@pytest.mark.parametrize("rows", [GERMAN[:2], (*GERMAN[1:], GERMAN[0])])
def test_rows_with_different_scores_are_an_error(translated: Path, rows: tuple[str, ...]) -> None:
    write(translated / "en" / "test.tsv", "sentence1\tsentence2\tscore", *rows)
    with pytest.raises(InputError, match="different scores; expected equal row numbers to be translations"):
        read_cross_lingual_sts(translated)


def test_a_folder_without_languages_is_an_error(tmp_path: Path) -> None:
    for read in (read_cross_lingual_sts, read_cross_lingual_retrieval):
        with pytest.raises(InputError, match="contains no"):
            read(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        read_cross_lingual_sts(tmp_path / "absent")


DOCUMENTS = {
    "de": {"1": "Haus", "2": "Baum", "3": "Tal"},
    "en": {"1": "house", "2": "tree", "3": "valley"},
}
QUERIES = {"de": "wo", "en": "where"}


def beir(folder: Path, language: str, judged: tuple[str, ...] = ("2", "3")) -> None:
    texts = [json.dumps({"_id": key, "text": text}) for key, text in DOCUMENTS[language].items()]
    write(folder / language / "corpus.jsonl", *texts)
    write(folder / language / "queries.jsonl", json.dumps({"_id": "q", "text": QUERIES[language]}))
    write(folder / language / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore", *(f"q\t{key}\t1" for key in judged))


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    for language in DOCUMENTS:
        beir(tmp_path / "quad", language)
    return tmp_path / "quad"


PLACES = _Angles(wo=0, where=0, Haus=50, Baum=20, Tal=30, house=10, tree=20, valley=30)


def test_cross_lingual_retrieval_equals_the_hand_computed_values(questions: Path) -> None:
    found = {
        score.task: score for score in score_cross_lingual_retrieval(PLACES, read_cross_lingual_retrieval(questions))
    }
    assert list(found) == [
        "quad, de-de", "quad, en-en", "quad, de-en", "quad, en-de", "quad, within", "quad, across", "quad, average",
    ]  # fmt: skip
    # Of the German documents both that are relevant come first; of the English ones they are second and third.
    assert found["quad, en-de"].details["MAP@100 x100"] == pytest.approx(100)
    across = found["quad, de-en"]
    assert across.details["MAP@100 x100"] == pytest.approx(100 * (1 / 2 + 2 / 3) / 2)
    assert across.details["MRR@10 x100"] == pytest.approx(50)
    gain = 1 / math.log2(3) + 1 / math.log2(4)
    assert across.value == pytest.approx(100 * gain / (1 + 1 / math.log2(3)))
    assert found["quad, across"].details["MRR@10 x100"] == pytest.approx(75)
    assert found["quad, average"].items == 4


def test_questions_are_encoded_as_queries(questions: Path) -> None:
    turned = _Angles(turned=50, **PLACES.degrees)
    (score, _) = score_cross_lingual_retrieval(turned, read_cross_lingual_retrieval(f"{questions}#de-de"))
    assert score.details["MRR@10 x100"] == 50  # the question is then at 50 degrees, where the wrong document is


def test_judgments_that_differ_between_languages_are_an_error(questions: Path) -> None:
    beir(questions, "en", judged=("1",))
    with pytest.raises(InputError, match="de and en have different judgments; expected the same ids"):
        read_cross_lingual_retrieval(questions)


def bitext(folder: Path, *rows: str, header: str = "de\ten\tsource") -> Path:
    return write(folder / "text" / "de-en.tsv", header, *rows)


def test_a_sentence_can_be_its_own_translation(tmp_path: Path) -> None:
    file = bitext(tmp_path, "Berlin\tBerlin\tx", "rot\tred\tx")
    there, back = score_bitext(_Angles(Berlin=0, rot=50, red=55), read_bitext([file]))
    assert (there.value, back.value) == (100, 100)


def test_bitext_accuracy_equals_the_hand_computed_values_in_both_directions(tmp_path: Path) -> None:
    file = bitext(tmp_path, "rot\tred\tx", "blau\tblue\tx", "gelb\tyellow\tx")
    encoder = _Angles(rot=0, blau=20, gelb=40, red=5, blue=36, yellow=33)
    there, back = score_bitext(encoder, read_bitext([file]))
    # blau at 20 is nearest to yellow at 33, gelb at 40 to blue at 36; back, blue and yellow are nearest to gelb.
    assert (there.task, back.task) == ("text/de-en, de to en", "text/de-en, en to de")
    assert there.value == pytest.approx(100 / 3)
    assert back.value == pytest.approx(200 / 3)
    assert (there.items, there.details) == (3, {"candidates": 3})


def test_any_of_several_translations_is_correct(tmp_path: Path) -> None:
    file = bitext(tmp_path, "rot\tred\tx", "rot\tpink\tx", "blau\tred\tx", "rot\tred\ty")
    task = read_bitext([file])
    assert len(task.files[0].pairs) == 3
    there, back = score_bitext(_Angles(rot=0, blau=60, red=50, pink=5), task)
    assert (there.value, there.items, there.details["candidates"]) == (100, 2, 2)
    assert (back.value, back.items) == (100, 2)


def test_bitext_columns_are_selected_and_encoded_as_sentences(tmp_path: Path) -> None:
    file = bitext(tmp_path, "x\trot\tred", "y\tblau\tblue", header="id\tde\ten")
    task = read_bitext([f"{file}#en,de"])
    assert task.files[0].languages == ("en", "de")
    scores = score_bitext(_Angles(turned=180, rot=0, blau=90, red=5, blue=80), task)
    assert [score.value for score in scores] == [100, 100]


def test_the_sample_of_a_bitext_is_deterministic(tmp_path: Path) -> None:
    file = bitext(tmp_path, *(f"eins {number}\tone {number}\tx" for number in range(50)))
    first, again = (read_bitext([file], max_rows=10).files[0].pairs for _ in range(2))
    assert first == again
    assert len(first) == 10
    assert all(one.split()[1] == other.split()[1] for one, other in first)


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        (("rot\t\tx",), "de\ten\tsource", "row 1 lacks a sentence"),
        (("rot\tred\tx", "rot\tred\ty"), "de\ten\tsource", "has 1 distinct pairs"),
        (("rot",), "de", ": 1 columns, de"),
    ],
)
def test_a_malformed_bitext_is_a_one_line_error(
    tmp_path: Path, rows: tuple[str, ...], header: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_bitext([bitext(tmp_path, *rows, header=header)])
    assert "\n" not in str(error.value)


@pytest.fixture
def everything(translated: Path, questions: Path, tmp_path: Path, name_encoders: NameEncoders) -> list[EvaluationTask]:
    degrees = COLORS.degrees | PLACES.degrees
    encoders = {"teacher": _Angles(**degrees), "student": _Angles(**(degrees | {"blue": 5, "yellow": 50}))}
    name_encoders(encoders.__getitem__)
    files = [bitext(tmp_path / name, "rot\tred\tx", "blau\tblue\tx", "gelb\tyellow\tx") for name in "ab"]
    return [
        CrossLingualSTS(f"{translated}#de-de,en-en,de-en"),
        Retrieval(questions / "en"),
        CrossLingualRetrieval(f"{questions}#de-en"),
        Bitext(*files),
    ]


def test_tables_have_the_papers_columns(everything: list[EvaluationTask]) -> None:
    sts, retrieval, across, texts = evaluate(["student"], everything, against="teacher").tables
    assert sts.columns == (
        "model", "DE-DE", "EN-EN", "DE-EN", "within", "across", "Avg.", "%", "params", "w/o embeddings",
    )  # fmt: skip
    assert sts.rows[0][1:8] == ("100.00", "50.00", "50.00", "75.00", "50.00", "66.67", "100.00")
    assert sts.rows[1][1:8] == ("100.00", "100.00", "100.00", "100.00", "100.00", "100.00", "150.00")
    assert retrieval.columns == ("model", "set", "queries", "MRR@10", "nDCG@10", "MAP@100", "%")
    assert [row[:2] for row in retrieval.rows] == [("teacher", "en"), ("student", "en")]
    assert across.rows[0][:2] == ("teacher", "quad, de-en")
    assert retrieval.rows[0][2:] == ("1", "0.5000", "0.6934", "0.5833", "100.00")
    assert texts.columns[-2:] == ("bitext, average", "bitext, average, %")
    assert "sentences: 3 per column" in texts.legend


def test_markdown_and_json_contain_every_pair(everything: list[EvaluationTask]) -> None:
    found = evaluate(["student"], everything)
    assert "## Similarity across languages, mt" in found.to_markdown()
    assert "## Bitext retrieval" in found.to_markdown()
    tasks = {score["task"]: score["value"] for score in found.models[0].to_dict()["scores"]}
    assert tasks["mt, de-en"] == pytest.approx(100)
    assert "quad, de-en" in tasks
    assert "bitext, average" in tasks
