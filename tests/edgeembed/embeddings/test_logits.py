"""Stores of a teacher's predictions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.classification import teachers
from edgeembed.classification.examples import ClassificationData, Examples
from edgeembed.classification.finetuning import finetune
from edgeembed.classification.model import TextClassifier
from edgeembed.classification.teachers import teacher_logits
from edgeembed.models import load_model


def classifier(folder: Path) -> TextClassifier:
    return TextClassifier(load_model(folder), ("no", "yes"), head="linear")


@pytest.fixture
def data(sentences: list[str]) -> ClassificationData:
    labels = np.arange(40) % 2
    examples = Examples(tuple(sentences[:40]), (), labels, None)
    return ClassificationData(examples, examples, ("no", "yes"))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of examples whose logits are computed."""
    asked: list[int] = []
    compute = teachers._compute_logits

    def recording(teacher: Any, data: ClassificationData, device: str) -> Any:
        asked.append(len(data.train))
        return compute(teacher, data, device)

    monkeypatch.setattr(teachers, "_compute_logits", recording)
    return asked


def test_a_teacher_predicts_once(
    teacher_folder: Path, data: ClassificationData, calls: list[int], tmp_path: Path
) -> None:
    teacher = classifier(teacher_folder)
    teacher.save(tmp_path / "teacher")
    first = teacher_logits(tmp_path / "teacher", data, "cpu", tmp_path / "cache")
    np.testing.assert_array_equal(first, teacher_logits(tmp_path / "teacher", data, "cpu", tmp_path / "cache"))
    assert calls == [40]
    np.testing.assert_array_equal(first, teacher_logits(tmp_path / "teacher", data, "cpu"))


def test_only_new_texts_and_all_of_another_teacher_are_computed(
    teacher_folder: Path, data: ClassificationData, calls: list[int], tmp_path: Path
) -> None:
    teacher, other = classifier(teacher_folder), classifier(teacher_folder)
    fewer = data.train.take(np.arange(39, 29, -1))
    some = teacher_logits(teacher, ClassificationData(fewer, fewer, data.labels), "cpu", tmp_path)
    every = teacher_logits(teacher, data, "cpu", tmp_path)
    np.testing.assert_array_equal(every[:29:-1], some)
    np.testing.assert_allclose(every, teacher_logits(teacher, data, "cpu"), atol=1e-6)
    assert calls == [10, 30, 40]
    teacher_logits(other, data, "cpu", tmp_path)  # another random head
    assert calls == [10, 30, 40, 40]


def test_the_two_texts_of_a_pair_are_kept_apart(
    teacher_folder: Path, data: ClassificationData, calls: list[int], tmp_path: Path
) -> None:
    pairs = [("a", "b c"), ("a b", "c"), ("a", "b c")]
    first, second = (tuple(each) for each in zip(*pairs, strict=True))
    examples = Examples(first, second, np.array([0, 1, 0]), None)
    task = ClassificationData(examples, examples, data.labels)
    teacher = TextClassifier(load_model(teacher_folder), ("no", "yes"), head="linear", is_pairs=True)
    found = teacher_logits(teacher, task, "cpu", tmp_path)
    np.testing.assert_allclose(found, teacher_logits(teacher, task, "cpu"), atol=1e-6)
    assert calls == [3, 3]


def test_a_damaged_file_is_computed_again(
    teacher_folder: Path, data: ClassificationData, calls: list[int], tmp_path: Path
) -> None:
    teacher = classifier(teacher_folder)
    first = teacher_logits(teacher, data, "cpu", tmp_path)
    (file,) = tmp_path.glob("*/shards/*.parquet")
    file.write_bytes(file.read_bytes()[:-8])
    np.testing.assert_array_equal(first, teacher_logits(teacher, data, "cpu", tmp_path))
    assert len(calls) == 2


def test_a_cache_that_cannot_be_written_is_an_error_before_the_teacher_reads(
    teacher_folder: Path, data: ClassificationData, calls: list[int], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"cannot write .*file.*; choose another place"):
        teacher_logits(classifier(teacher_folder), data, "cpu", tmp_path / "file")
    assert not calls


def test_finetune_reads_the_cache(
    teacher_folder: Path, data: ClassificationData, calls: list[int], tmp_path: Path
) -> None:
    rows = [f"{text}\t{data.labels[label]}" for text, label in zip(data.train.first, data.train.class_ids, strict=True)]
    (tmp_path / "train.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    teacher = classifier(teacher_folder)
    for seed in (0, 1):
        finetune(
            teacher_folder,
            tmp_path / "train.tsv",
            tmp_path / "train.tsv",
            tmp_path / f"student-{seed}",
            teacher=teacher,
            cache=tmp_path / "cache",
            overrides=["epochs=1"],
            seed=seed,
        )
    assert len(calls) == 1
