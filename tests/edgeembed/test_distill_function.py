"""The public function `distill`: kinds of arguments, checks before any work, callbacks, the report."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from edgeembed_runtime.errors import InputError
from transformers import TrainerCallback

from edgeembed.distillation import DistillationReport, distill, pipeline
from edgeembed.distillation.data import read_data
from edgeembed.models import load_model
from edgeembed.progress import SilentReporter
from edgeembed.recipe.loading import load_recipe, recipe_names, recipes
from edgeembed.training.data import LabeledData


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


TINY: Mapping[str, Any] = {
    "vocabulary.kind": "teacher",
    "student.layers": 1,
    "student.token_dim": 8,
    "student.max_seq_length": 32,
    "head.dim": 6,
    "stages.epochs": 1,
    "stages.batch_size": 32,
}


class _Steps(TrainerCallback):  # type: ignore[misc]  # transformers carries no types
    """Count the steps, and record the folder for TensorBoard's logs of each stage."""

    def __init__(self) -> None:
        self.count = 0
        self.log_folders: list[str] = []

    def on_init_end(self, args: Any, *_: object, **__: object) -> None:
        folder = os.environ["TENSORBOARD_LOGGING_DIR"]  # of transformers 5; transformers 4 has an argument
        assert getattr(args, "logging_dir", folder) == folder
        self.log_folders.append(folder)

    def on_step_end(self, *_: object, **__: object) -> None:
        self.count += 1


def test_a_teacher_in_memory_gives_the_same_student_and_is_not_changed(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    teacher = load_model(str(teacher_folder))
    before = {name: weight.clone() for name, weight in teacher.state_dict().items()}
    named = distill("compact", sentences, tmp_path / "a", teacher=teacher_folder, overrides=TINY)
    loaded = distill("compact", sentences, tmp_path / "b", teacher=teacher, overrides=TINY)
    assert loaded.losses == named.losses
    assert all(np.array_equal(weight, before[name]) for name, weight in teacher.state_dict().items())
    vectors = [load_model(str(report.path)).encode(sentences[:5]) for report in (named, loaded)]
    np.testing.assert_array_equal(*vectors)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is:DeprecationWarning")  # torch's own, of its compiler
@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="torch.compile needs a C++ compiler")
def test_a_compiled_student_learns_the_same(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    reports = [
        distill(
            "compact",
            sentences,
            tmp_path / str(compiles),
            teacher=teacher_folder,
            overrides={**TINY, "stages.compile": compiles},
        )
        for compiles in (False, True)
    ]
    assert reports[1].losses == pytest.approx(reports[0].losses, rel=1e-3)
    weights = [load_model(str(report.path)).state_dict() for report in reports]
    assert weights[0].keys() == weights[1].keys()


def test_texts_a_file_and_a_dataset_are_the_same_corpus(sentences: list[str], tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("\n".join(sentences), encoding="utf-8")
    labeled = LabeledData(None, (), None)
    read = [
        read_data(load_recipe("compact"), corpus, [], labeled, [], SilentReporter(), seed=0)
        for corpus in (sentences, file, [str(file)], Dataset.from_dict({"text": sentences}))
    ]
    assert all(each.sentences == read[0].sentences for each in read)
    assert len(read[0].sentences) == 0.9 * len(sentences)
    assert [each.names for each in read] == [("the given list",), (str(file),), (str(file),), ("the given dataset",)]


def test_callbacks_run_in_all_stages_and_the_report_has_the_history(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    stages = load_recipe("compact", TINY).to_dict()["stages"]
    overrides = {**TINY, "stages": [{**stages[0], "epochs": 1, "batch_size": 32}] * 2}
    overrides = {key: value for key, value in overrides.items() if not key.startswith("stages.")}
    steps = _Steps()
    report = distill(
        "compact", sentences, tmp_path / "s", teacher=teacher_folder, overrides=overrides, callbacks=[steps]
    )
    assert steps.count == 2 * 9
    assert steps.log_folders == [str(tmp_path / "s.logs" / f"stage-{number}") for number in (1, 2)]
    assert "TENSORBOARD_LOGGING_DIR" not in os.environ
    assert [points[-1][0] for points in report.history] == [9, 9]
    assert report.steps == (9, 9)
    assert [points[-1][1] for points in report.history] == list(report.final_losses)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recipe": "compct"}, r"no recipe called compct; did you mean compact\?"),
        ({"overrides": {"student.layer": 2}}, "student has no setting called layer"),
        ({"recipe": 3}, "recipe is 3; expected the name of a recipe"),
        ({"out": None}, "out is None; expected a folder"),
        ({"cache": 3}, "cache is 3; expected a folder"),
        ({"overrides": 3}, "overrides is 3; expected a list"),
        ({"overrides": "student.layers=2"}, "overrides is 'student.layers=2'; expected a list"),
        ({"corpus": None}, "the recipe compact learns from text"),
        ({"corpus": "missing.txt"}, "missing.txt does not exist"),
        ({"corpus": 3}, "corpus is 3; expected a file"),
        ({"parallel": "missing.tsv"}, "missing.tsv does not exist"),
        ({"parallel": 3}, "parallel is 3; expected a file, or a list of files"),
        ({"corpus": None, "pairs": "missing.tsv"}, "pairs: missing.tsv does not exist"),
        ({"corpus": None, "pairs": [3]}, r"pairs is \[3\]; expected a file"),
        ({"dev": "missing.tsv"}, "dev: missing.tsv does not exist"),
        ({"seed": -1}, "seed is -1; expected an integer from 0"),
        ({"teacher": "missing"}, "no model called missing"),
        ({"teacher": 3}, "the model is 3; expected"),
        ({"callbacks": [3]}, "callbacks holds 3; expected instances"),
        ({"report_to": "wandb"}, "report_to is 'wandb'; expected a list"),
        ({"report_to": ["wandbb"]}, r"report_to is \['wandbb'\]"),
    ],
)
def test_wrong_arguments_raise_one_error_before_any_work(
    arguments: Mapping[str, Any], message: str, teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    given = {"recipe": "compact", "corpus": sentences, "out": tmp_path / "s", "teacher": teacher_folder, **arguments}
    with pytest.raises(InputError, match=message) as raised:
        distill(**given)
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_the_report_has_a_short_text_tables_json_and_a_plot() -> None:
    report = DistillationReport(
        path=Path("student"),
        parameters=1_234_567,
        sentences=1000,
        languages=(),
        vocabulary_size=500,
        dimension=128,
        space=None,
        explained_variance=None,
        reused_sentences=0,
        augmentation=None,
        steps=(2000, 10),
        losses=(0.5, 0.25),
        final_losses=(0.4, 0.2),
        dev_spearman=(None, 81.26),
        held_out_agreement=71.3,
        whitening=None,
        seconds={"stage 1": 3.0},
        history=(((1, 0.6), (2, 0.4)), ((1, 0.3), (2, 0.2))),
    )
    assert str(report).splitlines() == [
        "student: 1,234,567 parameters, 128 dimensions, 500 tokens, distilled from 1,000 sentences",
        "stage 1: loss 0.4000 at the end",
        "stage 2: loss 0.2000 at the end, Spearman 81.3 (x100) on the development set",
        "held-out sentences: keeps 71 % of the teacher's ten nearest",
    ]
    assert "| 2 | 10 | 0.2500 | 0.2000 | 81.3 |" in report.to_markdown()
    assert json.loads(report.to_json())["history"][1] == [[1, 0.3], [2, 0.2]]
    assert "<svg" in report.to_svg()
    assert "data:image/svg+xml;base64," in report._repr_markdown_()


def test_recipes_lists_every_recipe_with_its_description() -> None:
    summaries = recipes()
    assert [each.name for each in summaries] == recipe_names()
    assert all(each.description and each.teacher for each in summaries)
