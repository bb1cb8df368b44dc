import json
from pathlib import Path

import pytest

from edgeembed.augmentation import back_translation
from edgeembed.cli.options import augmentation_overrides
from edgeembed.distillation import distill, pipeline
from edgeembed.provenance import read_provenance
from edgeembed.recipe.loading import load_recipe


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pipeline, back_translation):
        monkeypatch.setattr(module, "default_device", lambda: "cpu")


def overrides(teacher: Path) -> list[str]:
    return [
        f"teacher={json.dumps(str(teacher))}",
        "corpus.heldout=0",
        "vocabulary.kind=teacher",
        "student.layers=1",
        "student.token_dim=8",
        "student.max_seq_length=32",
        "head.dim=6",
        "stages.batch_size=32",
    ]


def test_a_student_is_distilled_from_augmented_sentences(
    teacher_folder: Path, translators: tuple[str, str], wordnet_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    recipe = load_recipe(
        "compact", [*overrides(teacher_folder), *augmentation_overrides(str(wordnet_folder), translators)]
    )
    text = [*sentences[:40], "the large bird sleeps today"]
    report = distill(recipe, text, tmp_path / "student", cache=tmp_path / "cache")
    assert report.augmentation is not None
    assert report.augmentation.originals == 41
    assert report.sentences == report.augmentation.sentences > 41
    stored = read_provenance(tmp_path / "student")
    assert stored["report"]["augmentation"]["methods"][0]["method"] == "synonyms"
    assert stored["recipe"]["augmentation"]["forward_model"] == Path(translators[0]).name


def test_without_augmentation_the_report_has_none(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    report = distill(load_recipe("compact", overrides(teacher_folder)), sentences[:40], tmp_path / "student")
    assert report.augmentation is None
    assert report.sentences == 40


def test_options_change_the_settings_of_the_recipe() -> None:
    assert augmentation_overrides(None, None) == []
    made = load_recipe("compact", augmentation_overrides("a folder", ("one", "other"))).augmentation
    assert (made.wordnet, made.forward_model, made.backward_model) == ("a folder", "one", "other")
