"""What does not fit together is an error before the teacher encodes anything; what is held out measures the student."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer, models

from edgeembed.distillation import distill, pipeline
from edgeembed.distillation.data import split_corpus
from edgeembed.models import load_model
from edgeembed.recipe.loading import load_recipe

TINY: dict[str, Any] = {
    "vocabulary.kind": "teacher",
    "student.layers": 1,
    "student.token_dim": 0,
    "student.max_seq_length": 32,
    "head.kind": "none",
    "stages.epochs": 0.2,
    "stages.batch_size": 32,
}


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


@pytest.fixture
def unigram(tmp_path: Path) -> Path:
    file = tmp_path / "tokenizer.json"
    pieces = [("<pad>", 0.0), ("<unk>", 0.0), *((letter, -1.0) for letter in "▁abcdefghij")]
    Tokenizer(models.Unigram(pieces, unk_id=1)).save(str(file))
    return file


@pytest.mark.parametrize(
    ("changes", "count", "message"),
    [
        ({"head.kind": "pca", "head.dim": 24}, 20, "there are 20 sentences to fit 24 principal components"),
        ({"head.kind": "linear", "head.dim": 24}, 20, "there are 20 sentences to fit 24 principal components"),
        ({"head.whiten_dim": 8}, 80, "there are 80 texts to whiten 8 dimensions; expected 81 or more"),
        ({"head.kind": "linear", "head.dim": 32, "head.center": True}, 20, "to fit 32 principal components"),
    ],
)
def test_too_little_text_is_an_error_before_the_teacher_encodes_it(
    changes: dict[str, Any], count: int, message: str, teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    overrides = {**TINY, "corpus.heldout": 0, **changes}
    with pytest.raises(InputError, match=message) as raised:
        distill("compact", sentences[:count], tmp_path / "s", teacher=teacher_folder, overrides=overrides)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "s.cache").exists()


def test_just_enough_text_is_no_error(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    overrides = {**TINY, "corpus.heldout": 0, "head.kind": "pca", "head.dim": 24}
    distill("compact", sentences[:24], tmp_path / "a", teacher=teacher_folder, overrides=overrides)
    overrides = {**TINY, "corpus.heldout": 0, "head.whiten_dim": 8}
    distill("compact", sentences[:81], tmp_path / "b", teacher=teacher_folder, overrides=overrides)


def test_a_vocabulary_that_cannot_be_mapped_is_an_error_before_the_teacher_encodes_and_the_advice_works(
    unigram: Path, teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    overrides = {**TINY, "vocabulary.kind": "file", "vocabulary.file": str(unigram), "student.table_init": "random"}
    with pytest.raises(
        InputError, match="the student's tokenizer is a Unigram tokenizer; expected WordPiece"
    ) as raised:
        distill("compact", sentences, tmp_path / "s", teacher=teacher_folder, overrides=overrides)
    assert not (tmp_path / "s.cache").exists()
    assert str(raised.value).endswith("(student.table_init=random, and no loss token_embedding)")
    stage = {"losses": {"cosine": 1.0}, "epochs": 0.2, "batch_size": 32}
    advised = {name: value for name, value in overrides.items() if not name.startswith("stages")} | {"stages": [stage]}
    report = distill("compact", sentences, tmp_path / "s", teacher=teacher_folder, overrides=advised)
    assert report.vocabulary_size == 13


def test_held_out_sentences_measure_how_much_of_the_teachers_ranking_is_kept(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    recipe = load_recipe("compact", {**TINY, "corpus.heldout": 20})
    report = distill(recipe, sentences, tmp_path / "s", teacher=teacher_folder)
    _, held_out = split_corpus(recipe, sentences)
    kept = []
    rankings = []
    for model in (teacher_folder, tmp_path / "s"):
        vectors = load_model(model).encode(held_out)
        cosines = vectors @ vectors.T
        np.fill_diagonal(cosines, -1)
        rankings.append([set(row) for row in np.argsort(-cosines, axis=1)[:, :10].tolist()])
    kept = [len(theirs & ours) / 10 for theirs, ours in zip(*rankings, strict=True)]
    assert report.sentences == len(sentences) - 20
    assert report.held_out_agreement == pytest.approx(100 * np.mean(kept), abs=1.0)  # float16 may swap a neighbor
    assert f"keeps {report.held_out_agreement:.0f} % of the teacher's ten nearest" in str(report)


def test_too_few_held_out_sentences_are_no_error(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    report = distill("compact", sentences[:60], tmp_path / "s", teacher=teacher_folder, overrides=TINY)
    assert report.held_out_agreement is None
