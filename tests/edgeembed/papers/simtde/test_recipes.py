"""The recipes of simtde, on a tiny random teacher."""

from pathlib import Path

import pytest
import torch
from edgeembed_runtime.errors import InputError

from edgeembed.architectures import encoder_layers
from edgeembed.distillation import distill, pipeline
from edgeembed.models import load_model
from edgeembed.recipe.loading import load_recipe

from ...tiny_recipes import (  # noqa: TID252
    TEACHER_WIDTH,
    made,
    prepared,
    tiny,
)


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


def test_lmx_is_narrow_and_learns_the_teachers_width(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    report = made(tiny("lmx-kd", teacher_folder), sentences, tmp_path, pairs)
    student = load_model(str(tmp_path / "student"))
    assert student[0].auto_model.config.hidden_size == 16
    assert report.dimension == TEACHER_WIDTH
    assert not any("matrices" in name for name in student.state_dict())


@pytest.mark.parametrize("steps", [2, 500], ids=["looks on the way", "ends before a look"])
def test_the_best_checkpoint_on_the_development_set_is_kept(
    teacher_folder: Path,
    sentences: list[str],
    dev: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: int,
) -> None:
    # The trainer looks in what it trains in, and in bfloat16 the ranks of ten pairs turn on the last bits.
    monkeypatch.setattr("edgeembed.training.trainer.has_bf16", lambda _device: False)
    from edgeembed.corpus.pairs import read_sts
    from edgeembed.evaluation.encoders import load_encoder
    from edgeembed.evaluation.tasks.sts import score_sts

    recipe = tiny("simtde-small", teacher_folder, f"stages.checkpoint_steps={steps}", "stages.learning_rate=0.01")
    report = distill(recipe, sentences, tmp_path / "student", dev=dev)
    (best,) = report.dev_spearman
    found = score_sts(load_encoder(str(tmp_path / "student")), read_sts(dev))[0].value
    assert best == pytest.approx(found, abs=0.01)


def test_pairs_that_no_stage_reads_raise(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="simtde-small has no stage that reads labeled pairs"):
        distill(tiny("simtde-small", teacher_folder), sentences, tmp_path / "student", pairs=[pairs])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("student.hidden_size=16", "the student is 16 wide and the teacher's embeddings have 32 dimensions"),
        ("head.whiten_dim=40", "head.whiten_dim is 40, but the student's embeddings have 32 dimensions"),
    ],
)
def test_incompatible_dimensions_raise(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, change: str, message: str
) -> None:
    recipe = tiny("simtde-small-no-token-loss", teacher_folder, change)
    with pytest.raises(InputError, match=message):
        distill(recipe, sentences, tmp_path / "student")


def test_the_two_students_with_a_random_table_differ_in_the_token_loss_alone() -> None:
    one, other = (load_recipe(f"simtde-small-random-table{end}") for end in ("", "-no-token-loss"))
    assert one.student == other.student
    assert (one.student.table_init, one.student.layer_init) == ("random", "last")
    assert [list(each.stages[0].losses) for each in (one, other)] == [["mse", "token_embedding"], ["mse"]]
    same = other.stages[0].replace(losses=one.stages[0].losses)
    assert one.stages == (same,)


@pytest.mark.parametrize(("changes", "copied"), [([], False), (["student.layer_init=last"], True)])
def test_hidden_states_replace_the_teachers_weights_unless_these_are_asked_for(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, changes: list[str], copied: bool
) -> None:
    student = prepared(tiny("simtde-small-hidden-states", teacher_folder, *changes), sentences, tmp_path).student
    ours, theirs = (encoder_layers(model[0].auto_model) for model in (student, load_model(str(teacher_folder))))
    assert len(ours) == 3
    name = "output.dense.weight"
    for mine, other in zip(ours, list(theirs)[1:], strict=True):
        assert torch.equal(mine.get_parameter(name), other.get_parameter(name)) is copied
