"""Stages of a recipe, run by `SentenceTransformerTrainer`."""

import shutil
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from edgeembed_runtime.errors import InputError
from safetensors import SafetensorError
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch import nn
from transformers import PrinterCallback, TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, get_last_checkpoint

from edgeembed.hardware import has_bf16
from edgeembed.recipe import StageSettings

_SHUFFLED_TOGETHER = 50


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
    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Collect no card: the exporter writes one that tells more."""


def train_stage(  # noqa: PLR0913  # what a stage is made of
    student: SentenceTransformer,
    sentences: Sequence[str],
    loss: nn.Module,
    stage: StageSettings,
    *,
    checkpoints: Path,
    resume: bool,
    seed: int,
    device: str,
    callbacks: Sequence[TrainerCallback] = (),
) -> float:
    """Train a student for one stage, in place.

    Args:
        student: The student.
        sentences: The corpus, shortest first; a sentence's place is its row in the teacher cache.
        loss: A loss over one text column whose label is that row.
        stage: The stage's settings.
        checkpoints: Folder for the stage's checkpoints.
        resume: Whether to go on from the last checkpoint there; one that finished gives the same weights as a run that
            was never interrupted.
        seed: Decides the order of the sentences, and dropout.
        device: A torch device.
        callbacks: Told of the trainer's steps.

    Returns:
        The mean loss over the stage.
    """
    dataset = Dataset.from_dict({"sentence": list(sentences), "label": np.arange(len(sentences), dtype=np.int64)})
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(checkpoints),
        num_train_epochs=stage.epochs,
        per_device_train_batch_size=stage.batch_size,
        learning_rate=stage.learning_rate,
        lr_scheduler_type=stage.schedule,
        warmup_steps=_warmup_steps(len(sentences), stage),
        weight_decay=stage.weight_decay,
        max_grad_norm=stage.max_grad_norm,
        batch_sampler=LengthGroupedSampler,
        save_steps=stage.checkpoint_steps,
        save_total_limit=1,
        bf16=has_bf16(device),
        use_cpu=device == "cpu",
        seed=seed,
        data_seed=seed,
        dataloader_pin_memory=device != "cpu",
        disable_tqdm=True,
        report_to=[],
        logging_steps=50,
    )
    trainer = _Trainer(model=student, args=arguments, train_dataset=dataset, loss=loss, callbacks=list(callbacks))
    trainer.remove_callback(PrinterCallback)  # it prints to stdout, which belongs to results
    checkpoint = _last_whole_checkpoint(checkpoints) if resume else None
    try:
        with warnings.catch_warnings():
            # torch warns of its own scheduler order when a checkpoint is loaded; nothing a user can act on.
            warnings.simplefilter("ignore")
            result = trainer.train(resume_from_checkpoint=checkpoint)
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"cannot write checkpoints to {checkpoints}: {error}; make room there or give another --cache"
        ) from error
    student.eval()
    return float(result.training_loss)


def _last_whole_checkpoint(folder: Path) -> str | None:
    """Find the checkpoint to resume from; the trainer writes trainer_state.json last, so one without was cut short."""
    for checkpoint in folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
        if not (checkpoint / "trainer_state.json").is_file():
            shutil.rmtree(checkpoint)
    return get_last_checkpoint(str(folder)) if folder.is_dir() else None


def _warmup_steps(count: int, stage: StageSettings) -> int:
    steps = stage.epochs * -(-count // stage.batch_size)
    return int(steps * stage.warmup_ratio)


def seed_everything(seed: int) -> None:
    """Make torch and NumPy draw the same numbers on every run of the same seed."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # libraries below still use the global generator
