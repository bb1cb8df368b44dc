"""Stages of a recipe, run by `SentenceTransformerTrainer`."""

import shutil
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from edgeembed_runtime.errors import InputError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.training_args import BatchSamplers
from torch import nn
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, get_last_checkpoint

from edgeembed.evaluation.sts import SentencePairs
from edgeembed.hardware import attention_in_training, has_bf16, own_precision
from edgeembed.progress import Advance
from edgeembed.stage_settings import StageSettings

_SHUFFLED_TOGETHER = 50
_DEV_METRIC = "eval_dev_spearman_cosine"
_OBJECTIVES_FILE = "objectives.safetensors"


class LengthGroupedSampler(DefaultBatchSampler):  # type: ignore[misc]  # sentence-transformers carries no types
    """Batches of sentences of like length, in random order, anew each epoch.

    The dataset is sorted by length, so neighbours pad little. Each epoch shuffles all sentences, cuts them into groups
    of fifty batches, sorts a group and cuts it into batches, and shuffles the batches.

    Args:
        dataset: The sentences, shortest first.
        batch_size: Sentences a batch.
        drop_last: Whether an incomplete batch is left out.
        generator: Its seed decides every epoch's order; the trainer seeds it with its own.
    """

    def __init__(
        self, dataset: Dataset, batch_size: int, drop_last: bool, generator: torch.Generator, **_: Any
    ) -> None:
        super().__init__(range(len(dataset)), batch_size=batch_size, drop_last=drop_last)
        self.seed = generator.initial_seed()

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng((self.seed, self.epoch))
        shuffled = random.permutation(len(self.sampler))
        group = self.batch_size * _SHUFFLED_TOGETHER
        batches: list[list[int]] = []
        for first in range(0, len(shuffled), group):
            rows = np.sort(shuffled[first : first + group])
            batches += [rows[at : at + self.batch_size].tolist() for at in range(0, len(rows), self.batch_size)]
        if self.drop_last:
            batches = [batch for batch in batches if len(batch) == self.batch_size]
        for index in random.permutation(len(batches)):
            yield batches[index]


class _Trainer(SentenceTransformerTrainer):  # type: ignore[misc]  # sentence-transformers carries no types
    """The trainer, for objectives that learn too: of itself it saves the student, and clears its gradients, alone."""

    def training_step(self, *arguments: Any, **options: Any) -> torch.Tensor:
        self._objectives().zero_grad()
        with attention_in_training(self.args.device.type):
            loss: torch.Tensor = super().training_step(*arguments, **options)
        return loss

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        super()._save(output_dir, state_dict)
        state = self._objectives().state_dict()
        if state and output_dir is not None:
            save_file(state, Path(output_dir) / _OBJECTIVES_FILE)

    def _load_from_checkpoint(self, checkpoint_path: str) -> None:
        super()._load_from_checkpoint(checkpoint_path)
        file = Path(checkpoint_path) / _OBJECTIVES_FILE
        if file.is_file():
            self._objectives().load_state_dict(load_file(file))

    def _objectives(self) -> nn.Module:
        objectives: nn.Module = getattr(self.loss, "trained", nn.ModuleList())
        return objectives

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Collect no card: the exporter writes one that tells more."""


class StepCallback(TrainerCallback):  # type: ignore[misc]  # transformers carries no types
    """Tells a reporter of the trainer's steps.

    Args:
        advance: Called with the number of steps done so far.
    """

    def __init__(self, advance: Advance) -> None:
        self.advance = advance

    def on_step_end(self, _args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_: Any) -> None:
        """Pass the number of steps on."""
        self.advance(state.global_step)


@dataclass(frozen=True)
class StageResult:
    """How a stage went.

    Attributes:
        loss: The mean loss over it.
        final_loss: The mean loss over its last steps, a tenth of all or 50 if that is fewer.
        dev_spearman: Spearman's correlation x100 of the weights that were kept, on the development set; None without.
    """

    loss: float
    final_loss: float
    dev_spearman: float | None


@own_precision()
def train_stage(  # noqa: PLR0913  # what a stage is made of
    student: SentenceTransformer,
    dataset: Dataset,
    loss: nn.Module,
    stage: StageSettings,
    *,
    checkpoints: Path,
    resume: bool,
    seed: int,
    device: str,
    dev: SentencePairs | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> StageResult:
    """Train a student for one stage, in place.

    Args:
        student: The student.
        dataset: What the loss reads, as `stage_dataset` gives it.
        loss: The loss.
        stage: The stage's settings.
        checkpoints: Folder for the stage's checkpoints.
        resume: Whether to go on from the last checkpoint there; one that finished gives the same weights as a run that
            was never interrupted.
        seed: Decides the order of the sentences, and dropout.
        device: A torch device.
        dev: Scored sentence pairs; the checkpoint that does best on them is kept, instead of the last.
        callbacks: Told of the trainer's steps.

    Returns:
        The losses, and the score on `dev`.

    Raises:
        InputError: If checkpoints cannot be read or written; the message gives the system's reason.
    """
    trainer = _Trainer(
        model=student,
        args=_arguments(stage, len(dataset), checkpoints, seed=seed, device=device, selects=dev is not None),
        train_dataset=dataset,
        loss=loss,
        evaluator=None if dev is None else _evaluator(dev),
        callbacks=[*callbacks, *([EarlyStoppingCallback(stage.patience)] if dev and stage.patience else [])],
    )
    trainer.remove_callback(PrinterCallback)  # it prints to stdout, which belongs to results
    checkpoint = last_whole_checkpoint(checkpoints) if resume else None
    try:
        with warnings.catch_warnings():
            # A resumed run restores the schedule, rightly, before the optimizer has made a step in this process.
            warnings.filterwarnings("ignore", r"Detected call of `lr_scheduler\.step\(\)` before", UserWarning)
            # Checkpoints less than a second apart; the trainer then orders them by number, which is right as well.
            warnings.filterwarnings("ignore", "mtime may not be reliable", UserWarning)
            result = trainer.train(resume_from_checkpoint=checkpoint)
            best = trainer.state.best_metric
            if dev is not None and best is None:  # a stage that ended before its first look
                best = trainer.evaluate()[_DEV_METRIC]
    except BrokenPipeError:  # the reader of the progress went away, which has nothing to do with checkpoints
        raise
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"cannot read or write the checkpoints in {checkpoints}: {reason(error)}; expected a folder with room that "
            "may be read and written: check it or give another --cache"
        ) from error
    # The trainer leaves its autocast around the student, which would round the vectors of whoever encodes with it next.
    trainer.accelerator.unwrap_model(student, keep_fp32_wrapper=False)
    student.eval()
    logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    final = float(logged[-1] if logged else result.training_loss)
    return StageResult(float(result.training_loss), final, None if best is None else 100 * float(best))


def _arguments(
    stage: StageSettings, count: int, checkpoints: Path, *, seed: int, device: str, selects: bool
) -> SentenceTransformerTrainingArguments:
    sampler: Any = LengthGroupedSampler
    if stage.contrastive:  # pairs that share a text would be each other's false negatives
        sampler = BatchSamplers.NO_DUPLICATES
    elif stage.reads_pairs or stage.reads_scored:  # which do not lie sorted by length
        sampler = BatchSamplers.BATCH_SAMPLER
    steps = stage.epochs * -(-count // stage.batch_size)
    return SentenceTransformerTrainingArguments(
        output_dir=str(checkpoints),
        num_train_epochs=stage.epochs,
        per_device_train_batch_size=stage.batch_size,
        learning_rate=stage.learning_rate,
        lr_scheduler_type=stage.schedule,
        warmup_steps=int(steps * stage.warmup_ratio),
        weight_decay=stage.weight_decay,
        max_grad_norm=stage.max_grad_norm,
        batch_sampler=sampler,
        save_steps=stage.checkpoint_steps,
        save_total_limit=1,
        eval_strategy="steps" if selects else "no",
        eval_steps=stage.checkpoint_steps,
        load_best_model_at_end=selects,
        metric_for_best_model=_DEV_METRIC if selects else None,
        bf16=has_bf16(device),
        use_cpu=device == "cpu",
        seed=seed,
        data_seed=seed,
        dataloader_pin_memory=device != "cpu",
        disable_tqdm=True,
        report_to=[],
        logging_steps=max(1, min(50, int(steps) // 10)),
    )


def _evaluator(dev: SentencePairs) -> EmbeddingSimilarityEvaluator:
    return EmbeddingSimilarityEvaluator(
        dev.first, dev.second, dev.scores.tolist(), main_similarity="cosine", name="dev", write_csv=False
    )


def last_whole_checkpoint(folder: Path) -> str | None:
    """Find the checkpoint to resume from; the trainer writes trainer_state.json last, so one without was cut short."""
    for checkpoint in folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
        if not (checkpoint / "trainer_state.json").is_file():
            shutil.rmtree(checkpoint)
    return get_last_checkpoint(str(folder)) if folder.is_dir() else None


def seed_everything(seed: int) -> None:
    """Make torch and NumPy draw the same numbers on every run of the same seed."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # libraries below still use the global generator


def reason(error: Exception) -> str:
    """Return what failed and on which file, in words for one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
