"""GLUE on frozen embeddings, on sets with known scores."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.evaluate import evaluate
from edgeembed.papers.cmow.tasks.glue import GLUE_TASKS, Glue, read_glue, score_glue

from ..conftest import NameEncoders  # noqa: TID252  # tests are not a package


class _Numbers:
    """An encoder whose embedding of "3 0.5" is (3, 0.5)."""

    def encode(self, texts: Any, /, *, batch_size: int = 32) -> Any:  # noqa: ARG002
        return np.array([[float(number) for number in text.split()] for text in texts], dtype=np.float32)

    encode_query = encode
    encode_document = encode


class _Same(_Numbers):
    """An encoder with equal embeddings for all texts."""

    def encode(self, texts: Any, /, *, batch_size: int = 32) -> Any:  # noqa: ARG002
        return np.ones((len(texts), 2), dtype=np.float32)


def singles(path: Path, count: int, seed: int, wrong: int = 0) -> None:
    """Write texts labeled by the sign of their first number, except for the first `wrong` ones."""
    random = np.random.default_rng(seed)
    numbers = random.uniform(1, 2, size=(count, 2)) * random.choice([-1, 1], size=(count, 2))
    labels = [int((first > 0) != (row < wrong)) for row, (first, _) in enumerate(numbers)]
    rows = [f"{first:.5f} {second:.5f}\t{label}" for (first, second), label in zip(numbers, labels, strict=True)]
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n")


def pairs(path: Path, count: int, seed: int, header: str, kind: str = "label") -> None:
    """Write pairs of near or distant texts, which only the difference of their embeddings shows."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        first, near = random.normal(size=2), random.integers(2)
        second = first + random.choice([-1, 1], size=2) * (0.1 if near else 3)
        value = str(near) if kind == "label" else str(4.0 if near else 1.0)
        rows.append("\t".join([" ".join(f"{each:.5f}" for each in text) for text in (first, second)] + [value]))
    path.write_text("\n".join([f"{header}\t{kind}", *rows]) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    singles(tmp_path / "cola_train.tsv", 200, 0)
    singles(tmp_path / "cola_dev.tsv", 100, 1, wrong=10)
    pairs(tmp_path / "mrpc_train_full.tsv", 200, 2, "sentence1\tsentence2")
    pairs(tmp_path / "mrpc_test.tsv", 100, 3, "sentence1\tsentence2")
    pairs(tmp_path / "stsb_train.tsv", 200, 4, "sentence1\tsentence2", "score")
    pairs(tmp_path / "stsb_dev.tsv", 100, 5, "sentence1\tsentence2", "score")
    pairs(tmp_path / "qnli_dev.tsv", 100, 6, "question\tsentence")  # without a training split
    return tmp_path


def test_tasks_with_both_splits_are_read_in_glues_order(folder: Path) -> None:
    assert [each.name for each in read_glue(folder)] == ["GLUE CoLA", "GLUE MRPC", "GLUE STS-B"]


def test_each_task_has_glues_metric(folder: Path) -> None:
    cola, mrpc, stsb = (score_glue(_Numbers(), each) for each in read_glue(folder))
    assert cola.metric == "matthews x100"
    assert cola.details["accuracy x100"] == pytest.approx(90)
    assert 70 < cola.value < 90
    assert (mrpc.metric, stsb.metric) == ("accuracy-f1 x100", "pearson-spearman x100")
    assert [mrpc.value, stsb.value] == pytest.approx([100, 100])
    assert cola.items == 100


def test_equal_embeddings_score_0(folder: Path) -> None:
    cola, _, stsb = (score_glue(_Same(), each) for each in read_glue(folder))
    assert cola.value == 0
    assert stsb.value == 0


def test_the_table_shows_missing_tasks_as_a_dash(folder: Path, name_encoders: NameEncoders) -> None:
    name_encoders(lambda _: _Numbers())
    found = evaluate(["it"], Glue(folder))
    (table,) = found.tables
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["QNLI"], row["MRPC"]) == ("-", "100.0")
    assert set(GLUE_TASKS) <= row.keys()


def test_a_folder_without_tasks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"contains none of GLUE's tasks; expected cola_train.tsv and cola_dev.tsv"):
        read_glue(tmp_path)
