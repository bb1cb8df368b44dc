"""Each recipe that comes with edgeembed, run on a tiny random teacher."""

from pathlib import Path

import pytest

from edgeembed.corpus.parallel import ParallelText
from edgeembed.distillation import pipeline
from edgeembed.recipe.loading import recipes

from .tiny_recipes import check_trains  # tests are not a package


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


@pytest.mark.parametrize("name", [each.name for each in recipes() if each.plugin is None])
def test_every_recipe_trains_a_student_that_encodes(
    name: str,
    teacher_folder: Path,
    sentences: list[str],
    pairs: Path,
    dev: Path,
    parallel: ParallelText,
    tmp_path: Path,
) -> None:
    check_trains(name, teacher_folder, sentences, pairs, dev, parallel, tmp_path)
