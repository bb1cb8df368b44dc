"""The trainer of a stage: which steps it evaluates, what it keeps and reports, how it resumes, in which precision."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
from transformers import EarlyStoppingCallback, TrainerCallback, TrainerControl, TrainerState

from edgeembed.distillation import DistillationReport, distill, pipeline
from edgeembed.losses.base import LossInputs
from edgeembed.losses.similarity import Similarity
from edgeembed.progress import Advance
from edgeembed.training import checkpoints, trainer

from .weights import assert_equal  # tests are not a package

# 270 sentences in batches of 32: nine steps an epoch.
TINY: Mapping[str, Any] = {
    "corpus.heldout": 30,
    "vocabulary.kind": "teacher",
    "student.layers": 1,
    "student.token_dim": 0,
    "student.max_seq_length": 32,
    "head.kind": "none",
}
STAGE: Mapping[str, Any] = {
    "losses": {"cosine": 1.0},
    "epochs": 1.0,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "checkpoint_steps": 4,
}


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    file = tmp_path / "dev.tsv"
    file.write_text("score\tsentence1\tsentence2\n1\ta cat\ta dog\n2\ta bird\ta cat\n3\tthe dog\ta dog\n")
    return file


class _Recorder(TrainerCallback):  # type: ignore[misc]  # transformers carries no types
    """Record the steps of evaluations and checkpoints of all stages, and interrupt or end training if asked to."""

    def __init__(self, *, interrupts: tuple[int, int] = (0, 0), ends: int = 0) -> None:
        self.stage, self.interrupts, self.ends = 0, interrupts, ends
        self.evaluated: list[int] = []
        self.saved: list[int] = []
        self.trained: list[tuple[int, int]] = []

    def on_train_begin(self, *_: object, **__: object) -> None:
        self.stage += 1

    def on_step_end(self, _args: object, state: TrainerState, control: TrainerControl, **_: object) -> None:
        self.trained.append((self.stage, state.global_step))
        if (self.stage, state.global_step) == self.interrupts:
            raise _InterruptedError
        control.should_training_stop |= state.global_step == self.ends

    def on_evaluate(self, _args: object, state: TrainerState, *_: object, **__: object) -> None:
        self.evaluated.append(state.global_step)

    def on_save(self, _args: object, state: TrainerState, *_: object, **__: object) -> None:
        self.saved.append(state.global_step)


class _InterruptedError(Exception):
    pass


def scored(monkeypatch: pytest.MonkeyPatch, scores: Mapping[int, float]) -> None:
    """Let students have these scores on the development set, by step."""

    class Evaluator(SentenceEvaluator):  # type: ignore[misc]  # sentence-transformers carries no types
        def __call__(self, *_: object, steps: int, **__: object) -> dict[str, float]:
            return {"dev_spearman_cosine": scores[steps]}

    monkeypatch.setattr(trainer, "_evaluator", lambda _dev: Evaluator())


def run(
    teacher: Path, sentences: list[str], out: Path, *stages: Mapping[str, Any], callback: Any = None, **options: Any
) -> DistillationReport:
    made = [{**STAGE, **stage} for stage in stages] or [dict(STAGE)]
    overrides = {**TINY, "stages": made, **options.pop("overrides", {})}
    callbacks = [callback] if isinstance(callback, TrainerCallback) else callback or []
    return distill("compact", sentences, out, teacher=teacher, overrides=overrides, callbacks=callbacks, **options)


@pytest.mark.parametrize(("interval", "evaluated"), [(4, [4, 8, 9]), (3, [3, 6, 9]), (9, [9]), (500, [9])], ids=str)
def test_the_last_step_is_evaluated_and_saved_too(
    interval: int, evaluated: list[int], teacher_folder: Path, sentences: list[str], dev: Path, tmp_path: Path
) -> None:
    seen = _Recorder()
    stage = {"checkpoint_steps": interval}
    run(teacher_folder, sentences, tmp_path / "s", stage, callback=seen, dev=dev)
    assert seen.evaluated == seen.saved == evaluated


def test_a_student_that_is_best_at_the_last_step_is_kept_as_it_is_then(
    teacher_folder: Path, sentences: list[str], dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(teacher_folder, sentences, tmp_path / "without")
    scored(monkeypatch, {4: 0.1, 8: 0.2, 9: 0.3})
    report = run(teacher_folder, sentences, tmp_path / "with", dev=dev)
    assert report.dev_spearman == pytest.approx((30.0,))
    assert_equal(tmp_path / "with", tmp_path / "without")


def test_an_earlier_step_that_is_best_is_kept(
    teacher_folder: Path, sentences: list[str], dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(teacher_folder, sentences, tmp_path / "until 4", callback=_Recorder(ends=4))
    scored(monkeypatch, {4: 0.3, 8: 0.2, 9: 0.1})
    report = run(teacher_folder, sentences, tmp_path / "with", dev=dev)
    assert report.dev_spearman == pytest.approx((30.0,))
    assert_equal(tmp_path / "with", tmp_path / "until 4")


def test_a_step_at_which_a_callback_ends_training_is_evaluated_too(
    teacher_folder: Path, sentences: list[str], dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored(monkeypatch, {4: 0.1, 6: 0.2})
    seen = _Recorder(ends=6)
    report = run(teacher_folder, sentences, tmp_path / "s", callback=seen, dev=dev)
    assert seen.evaluated == [4, 6]
    assert report.dev_spearman == pytest.approx((20.0,))


def test_a_best_checkpoint_that_cannot_be_loaded_is_an_error(
    teacher_folder: Path, sentences: list[str], dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Removes(TrainerCallback):  # type: ignore[misc]  # as above
        def on_save(self, _args: object, state: TrainerState, *_: object, **__: object) -> None:
            if state.global_step == 9:
                (file,) = tmp_path.glob("s.cache/checkpoints/*/0/checkpoint-4/losses.safetensors")
                file.unlink()

    scored(monkeypatch, {4: 0.3, 8: 0.2, 9: 0.1})
    with pytest.raises(InputError, match=r"cannot read or write the checkpoints in .*losses\.safetensors"):
        run(teacher_folder, sentences, tmp_path / "s", callback=Removes(), dev=dev)


# Two evaluations of patience: eight steps of nine.
PATIENT: Mapping[str, Any] = {"epochs": 3.0, "patience": 0.8}
SCORES = {4: 0.5, 8: 0.4, 12: 0.3, 16: 0.6, 20: 0.1, 24: 0.1, 27: 0.1}


def test_a_resumed_run_stops_early_where_an_uninterrupted_one_does(
    teacher_folder: Path, sentences: list[str], dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored(monkeypatch, SCORES)
    whole = run(teacher_folder, sentences, tmp_path / "whole", PATIENT, dev=dev)
    assert whole.steps == (12,)
    with pytest.raises(_InterruptedError):
        run(teacher_folder, sentences, tmp_path / "s", PATIENT, callback=_Recorder(interrupts=(1, 10)), dev=dev)
    resumed = run(teacher_folder, sentences, tmp_path / "s", PATIENT, dev=dev, resume=True)
    assert resumed.steps == (12,)
    assert resumed.dev_spearman == pytest.approx((50.0,))
    assert_equal(tmp_path / "s", tmp_path / "whole")


def test_the_callers_own_early_stopping_resumes_beside_the_stages(
    teacher_folder: Path, sentences: list[str], dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored(monkeypatch, SCORES)
    patient = {**PATIENT, "patience": 5.0}
    callbacks = [EarlyStoppingCallback(2), _Recorder(interrupts=(1, 10))]
    with pytest.raises(_InterruptedError):
        run(teacher_folder, sentences, tmp_path / "s", patient, callback=callbacks, dev=dev)
    callbacks = [EarlyStoppingCallback(2)]
    resumed = run(teacher_folder, sentences, tmp_path / "s", patient, callback=callbacks, dev=dev, resume=True)
    assert resumed.steps == (12,)


@pytest.mark.parametrize("interrupts", [(2, 2), (2, 6)], ids=["before a checkpoint", "after a checkpoint"])
def test_a_finished_stage_is_loaded_and_not_trained_again(
    interrupts: tuple[int, int],
    teacher_folder: Path,
    sentences: list[str],
    dev: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scored(monkeypatch, {**SCORES, 9: 0.9})
    narrow = {"student.hidden_size": 16, "head.kind": "linear", "head.dim": 32}
    stages = PATIENT, {"losses": {"hidden_states": 1.0, "mse": 1.0}}  # a loss whose linear layer starts at random
    options: dict[str, Any] = {"dev": dev, "overrides": narrow}
    whole = run(teacher_folder, sentences, tmp_path / "whole", *stages, **options)
    with pytest.raises(_InterruptedError):
        run(teacher_folder, sentences, tmp_path / "s", *stages, callback=_Recorder(interrupts=interrupts), **options)
    seen = _Recorder()
    resumed = run(teacher_folder, sentences, tmp_path / "s", *stages, callback=seen, resume=True, **options)
    assert seen.stage == 1
    assert seen.trained[-1] == (1, 9)
    assert resumed.steps == whole.steps == (12, 9)
    assert resumed.history == whole.history
    assert resumed.losses == pytest.approx(whole.losses, rel=1e-6)
    assert resumed.dev_spearman == whole.dev_spearman
    assert_equal(tmp_path / "s", tmp_path / "whole")


def test_a_moved_cache_keeps_the_best_checkpoint(
    teacher_folder: Path, sentences: list[str], dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored(monkeypatch, {4: 0.3, 8: 0.2, 9: 0.1})
    run(teacher_folder, sentences, tmp_path / "whole", dev=dev)
    seen = _Recorder(interrupts=(1, 7))
    with pytest.raises(_InterruptedError):
        run(teacher_folder, sentences, tmp_path / "s", callback=seen, dev=dev, cache=tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    run(teacher_folder, sentences, tmp_path / "s", dev=dev, cache=tmp_path / "new", resume=True)
    assert_equal(tmp_path / "s", tmp_path / "whole")


def test_the_mean_loss_of_a_resumed_run_is_that_of_all_its_steps(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    whole = run(teacher_folder, sentences, tmp_path / "whole")
    with pytest.raises(_InterruptedError):
        run(teacher_folder, sentences, tmp_path / "s", callback=_Recorder(interrupts=(1, 7)))
    resumed = run(teacher_folder, sentences, tmp_path / "s", resume=True)
    assert whole.losses[0] == pytest.approx(np.mean([loss for _, loss in whole.history[0]]), abs=1e-4)
    assert resumed.losses == pytest.approx(whole.losses, rel=1e-6)


def test_the_final_loss_includes_the_last_step(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    report = run(teacher_folder, sentences, tmp_path / "s", {"epochs": 2.75})  # 25 steps, two a logged mean
    *_, (before, _), (full, mean), (last, single) = report.history[0]
    assert (before, full, last) == (22, 24, 25)
    assert report.final_losses == pytest.approx(((2 * mean + single) / 3,))


class _Totals:
    """A reporter that records the total of each step, and how far it came."""

    def __init__(self) -> None:
        self.steps: dict[str, tuple[int | None, list[int]]] = {}

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:  # noqa: ARG002
        self.steps[name] = total, []
        yield self.steps[name][1].append

    def note(self, message: str) -> None:
        """Ignore the message."""


@pytest.mark.parametrize("epochs", [0.3, 1.0, 1.43])
def test_progress_ends_at_its_total(epochs: float, teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    totals = _Totals()
    report = run(teacher_folder, sentences, tmp_path / "s", {"epochs": epochs}, reporter=totals)
    total, done = totals.steps["stage 1"]
    assert done == list(range(report.steps[0] + 1))
    assert total == report.steps[0]


def test_two_runs_of_the_same_recipe_text_and_seed_do_not_share_a_cache(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    class Starts(TrainerCallback):  # type: ignore[misc]  # as above
        def on_step_end(self, _args: object, state: TrainerState, *_: object, **__: object) -> None:
            if state.global_step == 5:
                with pytest.raises(InputError, match=r"cache is in use by another run of the same recipe, text and"):
                    run(teacher_folder, sentences, tmp_path / "b", cache=tmp_path / "cache")
                assert list(tmp_path.glob("cache/checkpoints/*/0/checkpoint-4"))

    run(teacher_folder, sentences, tmp_path / "a", cache=tmp_path / "cache", callback=Starts())
    assert not list(tmp_path.glob("cache/checkpoints/*"))


def test_losses_are_computed_in_float32_where_the_student_runs_in_bfloat16(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, set[torch.dtype]] = {"student": set(), "loss": set()}
    compute, handles = Similarity.compute, list[Any]()

    def recording(loss: Similarity, inputs: LossInputs) -> torch.Tensor:
        seen["loss"] |= {inputs.student.dtype, (inputs.student @ inputs.student.T).dtype}
        return compute(loss, inputs)

    def watch(*_: object) -> None:
        seen["student"].add((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)

    class Watches(TrainerCallback):  # type: ignore[misc]  # as above
        def on_step_begin(self, *_: object, model: torch.nn.Sequential, **__: object) -> None:
            handles.append(model[0].register_forward_pre_hook(watch))

        def on_step_end(self, *_: object, **__: object) -> None:
            handles.pop().remove()

    monkeypatch.setattr(trainer, "has_bf16", lambda _device: True)
    monkeypatch.setattr(Similarity, "compute", recording)
    run(teacher_folder, sentences, tmp_path / "s", {"losses": {"similarity": 1.0}}, callback=Watches())
    assert seen == {"student": {torch.bfloat16}, "loss": {torch.float32}}


def test_a_checkpoint_of_a_run_that_goes_on_is_not_finished(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    with pytest.raises(_InterruptedError):
        run(teacher_folder, sentences, tmp_path / "s", callback=_Recorder(interrupts=(1, 7)))
    (folder,) = tmp_path.glob("s.cache/checkpoints/*/0/checkpoint-4")
    assert checkpoints.finished_state(str(folder)) is None


def test_an_integration_without_its_package_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def __init__(self) -> None:
            raise RuntimeError("requires tensorboard. Either update your PyTorch version or install tensorboardX.")

    monkeypatch.setattr(trainer, "get_reporting_integration_callbacks", lambda _names: [Missing])
    with pytest.raises(InputError, match=r"^report_to names tensorboard, .* expected it: pip install tensorboard$"):
        trainer.check_trainer_options([], ["tensorboard"])
