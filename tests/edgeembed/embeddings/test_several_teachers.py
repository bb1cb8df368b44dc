"""Distillation from several teachers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_exporters.reduction.pca_head import fit_pca
from edgeembed_runtime import Encoder
from edgeembed_runtime.errors import InputError

import edgeembed
from edgeembed.distillation import pipeline
from edgeembed.models import load_model

TINY = {
    "vocabulary.kind": "teacher",
    "student.layers": 1,
    "student.token_dim": 8,
    "student.max_seq_length": 32,
    "head.kind": "linear",
    "head.dim": 16,
    "corpus.min_characters": 1,
    "corpus.heldout": 20,
    "stages.epochs": 1,
    "teachers": [{"name": "nano", "weight": 2.0}],
}


@pytest.fixture(autouse=True)
def _float32_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")
    monkeypatch.setattr("edgeembed.hardware.has_bf16", lambda _device: False)


def standardized(vectors: Any) -> Any:
    """Return the centered cosines of all pairs, divided by their standard deviation."""
    centered = vectors - vectors.mean(axis=0)
    unit = centered / np.linalg.norm(centered, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    return cosines / cosines.std()


def test_a_student_learns_the_combined_similarities_of_its_teachers(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    out, settings = tmp_path / "student", dict[str, Any](teacher=teacher_folder, overrides=TINY)
    report = edgeembed.distill("compact", sentences, out, **settings)
    assert (report.dimension, report.space, report.reused_sentences) == (16, None, 0)
    assert load_model(out).encode(["the cat"]).shape == (1, 16)
    (file,) = (
        file for file in (tmp_path / "student.cache" / "vectors").glob("*.f16") if file.stat().st_size % 576 == 0
    )
    combined = np.fromfile(file, np.float16).reshape(-1, 32 + 256).astype(np.float32)
    assert len(combined) == len(sentences)
    np.testing.assert_allclose(np.linalg.norm(combined, axis=1), 1, atol=1e-3)
    again = edgeembed.distill("compact", sentences, tmp_path / "b", cache=tmp_path / "student.cache", **settings)
    assert (again.losses, again.reused_sentences) == (report.losses, report.sentences)


def test_the_combination_is_that_of_the_models_own_embeddings(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def recording(vectors: Any, dim: int) -> Any:
        seen.append(np.array(vectors))
        return fit_pca(vectors, dim)

    monkeypatch.setattr(pipeline, "fit_pca", recording)
    overrides = {**TINY, "corpus.heldout": 0}
    edgeembed.distill("compact", sentences, tmp_path / "s", teacher=teacher_folder, overrides=overrides)
    texts = sorted(sentences, key=len)
    parts = (load_model(teacher_folder).encode(texts), Encoder("nano").encode_document(texts))
    expected = standardized(parts[0]) + 2 * standardized(parts[1])
    found = seen[0].astype(np.float32)
    cosines = (found @ found.T)[np.triu_indices(len(found), 1)]
    assert np.corrcoef(cosines, expected)[0, 1] > 0.999


def test_what_does_not_suit_several_teachers_is_said_before_any_work(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    for change, message in (
        ({"teachers": [{"name": "no-such-model"}]}, "no model called no-such-model"),
        ({"teachers": [{"name": "nano", "weight": 0.0}]}, r"teachers\.?.*weight is 0\.0; expected"),
        ({"head.normalize": False}, "head.normalize is False; expected true with several teachers"),
        ({"head.kind": "pca"}, r"the student is 32 wide and the teacher's embeddings have 288 dim.*head.kind=linear"),
    ):
        with pytest.raises(InputError, match=message):
            edgeembed.distill(
                "compact", sentences, tmp_path / "s", teacher=teacher_folder, overrides={**TINY, **change}
            )
    assert not (tmp_path / "s.cache" / "teacher").exists()
