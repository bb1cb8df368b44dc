"""Which students and bundles state their teacher's embedding space."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from edgeembed_exporters.space import embedding_space
from edgeembed_runtime import Bundle
from sentence_transformers import SentenceTransformer

from edgeembed.distillation import distill, pipeline
from edgeembed.distillation.comparison import compare_with_teacher
from edgeembed.exporting import export
from edgeembed.models import load_model
from edgeembed.progress import SilentReporter, TimedSteps
from edgeembed.provenance import stated_space
from edgeembed.recipe.loading import load_recipe
from edgeembed.recipe.stages import StageSettings

_SMALL = [
    "vocabulary.kind=teacher",
    "student.layers=1",
    "student.token_dim=8",
    "student.max_seq_length=32",
    "corpus.heldout=0",
    "stages.epochs=1",
    "stages.batch_size=64",
]


# Enough for a student of this size to learn its teacher's embeddings of a few hundred sentences.
_TRAINED = ["head.kind=none", "student.token_dim=32", "stages.epochs=30", "stages.learning_rate=0.005"]


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


class _Notes(SilentReporter):
    """Keeps the notes."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def note(self, message: str) -> None:
        self._notes.append(message)


def _student(teacher: Path, sentences: list[str], out: Path, *settings: str) -> str | None:
    recipe = load_recipe("compact", [*_SMALL, *settings])
    return distill(recipe, sentences, out, teacher=teacher).space


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ({"cosine": 1.0, "similarity": 5.0}, True),
        ({"mse": 1.0}, True),
        ({"contrastive_distillation": {}}, True),
        ({"similarity": 1.0}, False),
        ({"hidden_states": 1.0}, False),
        ({"contrastive": {}}, False),
    ],
)
def test_only_losses_on_the_embeddings_themselves_teach_the_space(losses: dict[str, Any], expected: bool) -> None:
    stage = StageSettings(losses=losses)
    assert stage.teaches_space is expected
    if expected:
        assert not stage.replace(project_to_teacher=True).teaches_space


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ("mini", True),
        ("nano", False),
        ("compact", False),
        ("micro", True),
    ],
)
def test_packaged_recipes_teach_the_space_if_they_have_no_head(recipe: str, expected: bool) -> None:
    settings = load_recipe(recipe)
    has_own_width = settings.head.kind in {"none", "linear"}  # the teacher's, in these recipes
    assert (settings.stages[-1].teaches_space and has_own_width) is expected


def test_a_student_without_a_head_states_its_teachers_space_and_so_does_its_bundle(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    space = embedding_space(load_model(str(teacher_folder)))
    student = tmp_path / "student"
    assert _student(teacher_folder, sentences, student, *_TRAINED) == space
    assert stated_space(student) == space
    assert f"the teacher's, `{space}`" in (student / "README.md").read_text(encoding="utf-8")
    export(student, tmp_path / "bundle", min_cosine=0.9)
    assert Bundle.open(tmp_path / "bundle").space == space
    again = distill(load_recipe("compact", [*_SMALL, *_TRAINED]), sentences, tmp_path / "2", teacher=student)
    assert again.space == space  # a student of the student


def test_a_student_with_a_head_has_a_space_of_its_own(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    student = tmp_path / "student"
    assert _student(teacher_folder, sentences, student, "head.dim=6") is None
    assert stated_space(student) is None
    assert "Embedding space: its own" in (student / "README.md").read_text(encoding="utf-8")
    export(student, tmp_path / "bundle", min_cosine=0.9)
    assert Bundle.open(tmp_path / "bundle").space == embedding_space(load_model(str(student)))


def test_a_student_that_has_learned_nothing_has_a_space_of_its_own(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    student, notes = tmp_path / "student", list[str]()
    recipe = load_recipe("compact", [*_SMALL, "head.kind=none", "stages.learning_rate=1e-7"])
    report = distill(recipe, sentences, student, teacher=teacher_folder, reporter=_Notes(notes))
    assert report.space is None
    assert stated_space(student) is None
    assert any("an embedding space of its own: its mean cosine to the teacher's" in note for note in notes)


def test_the_same_embedding_for_every_text_is_no_embedding_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """All embeddings of the teacher are alike, so that their mean has a high cosine to each."""
    expected = np.eye(8, dtype=np.float16) + 4
    given = np.tile(expected.mean(axis=0), (8, 1)) + np.random.default_rng(0).normal(0, 1e-3, (8, 8))
    for student, space in ((given, None), (expected * 3, "shared")):
        prepared: Any = SimpleNamespace(
            space="shared",
            held_out=[],
            held_out_embeddings=None,
            cached=SimpleNamespace(vectors=expected),
            text=SimpleNamespace(sentences=list("abcdefgh")),
        )
        encoder: Any = SimpleNamespace(encode=lambda *_, rows=student, **__: rows.astype(np.float32))
        assert compare_with_teacher(prepared, encoder, TimedSteps(SilentReporter())).space == space


def test_whitening_and_similarities_alone_leave_the_teachers_space(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    assert _student(teacher_folder, sentences, tmp_path / "1", "head.kind=none", "head.whiten_dim=6") is None
    settings = ("head.kind=none", "stages.losses={similarity=1.0}")
    assert _student(teacher_folder, sentences, tmp_path / "2", *settings) is None


def test_a_student_that_was_changed_afterwards_states_no_space(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    student = tmp_path / "student"
    _student(teacher_folder, sentences, student, *_TRAINED)
    with (student / "README.md").open("a", encoding="utf-8") as card:
        card.write("A note.\n")
    assert stated_space(student) is not None
    model: SentenceTransformer = load_model(student)
    next(iter(model.parameters())).data.mul_(2)
    model.save(str(student), create_model_card=False)
    assert stated_space(student) is None
