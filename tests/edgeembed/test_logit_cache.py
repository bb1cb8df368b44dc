"""The on-disk cache of a teacher's predictions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.classification import logit_cache
from edgeembed.classification.examples import ClassificationData, Examples
from edgeembed.classification.finetuning import finetune
from edgeembed.classification.logit_cache import cached_teacher_logits
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
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The teachers that are asked for logits."""
    asked: list[Any] = []

    def recording(teacher: Any, *arguments: Any) -> Any:
        asked.append(teacher)
        return teacher_logits(teacher, *arguments)

    monkeypatch.setattr(logit_cache, "teacher_logits", recording)
    return asked


def test_a_teacher_predicts_once(
    teacher_folder: Path, data: ClassificationData, calls: list[Any], tmp_path: Path
) -> None:
    teacher = classifier(teacher_folder)
    teacher.save(tmp_path / "teacher")
    first = cached_teacher_logits(tmp_path / "teacher", data, "cpu", tmp_path / "cache")
    np.testing.assert_array_equal(first, cached_teacher_logits(tmp_path / "teacher", data, "cpu", tmp_path / "cache"))
    np.testing.assert_array_equal(first, teacher_logits(tmp_path / "teacher", data, "cpu"))
    assert len(calls) == 1


def test_other_texts_labels_and_weights_have_their_own_predictions(
    teacher_folder: Path, data: ClassificationData, calls: list[Any], tmp_path: Path
) -> None:
    teacher, other = classifier(teacher_folder), classifier(teacher_folder)
    fewer = Examples(data.train.first[1:], (), data.train.class_ids[1:], None)
    cached_teacher_logits(teacher, data, "cpu", tmp_path)
    cached_teacher_logits(teacher, ClassificationData(fewer, fewer, data.labels), "cpu", tmp_path)
    cached_teacher_logits(other, data, "cpu", tmp_path)  # another random head
    assert len(calls) == 3
    cached_teacher_logits(other, data, "cpu", tmp_path)
    assert len(calls) == 3


def test_a_damaged_file_is_computed_again(
    teacher_folder: Path, data: ClassificationData, calls: list[Any], tmp_path: Path
) -> None:
    teacher = classifier(teacher_folder)
    first = cached_teacher_logits(teacher, data, "cpu", tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-8])
    np.testing.assert_array_equal(first, cached_teacher_logits(teacher, data, "cpu", tmp_path))
    assert len(calls) == 2


def test_a_cache_that_cannot_be_written_is_an_error_before_the_teacher_reads(
    teacher_folder: Path, data: ClassificationData, calls: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"cannot write the teacher's logits .*file.*choose another --cache"):
        cached_teacher_logits(classifier(teacher_folder), data, "cpu", tmp_path / "file")
    assert not calls


def test_finetune_reads_the_cache(
    teacher_folder: Path, data: ClassificationData, calls: list[Any], tmp_path: Path
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
