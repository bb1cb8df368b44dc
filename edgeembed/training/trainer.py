"""Train a student for one stage of a recipe with `SentenceTransformerTrainer`."""

import math
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.data_loader import BatchSamplerShard
from datasets import Dataset
from edgeembed_runtime.errors import InputError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.training_args import BatchSamplers
from torch import nn
from torch.utils.data import DataLoader
from transformers import EarlyStoppingCallback, PrinterCallback, TrainerCallback, TrainerState
from transformers.integrations import get_reporting_integration_callbacks

from edgeembed.corpus.pairs import SentencePairs
from edgeembed.hardware import has_bf16, isolated_precision
from edgeembed.processes import process_count, process_index, sum_gradients
from edgeembed.recipe.stages import StageSettings
from edgeembed.training.batches import LengthGroupedSampler
from edgeembed.training.callbacks import LastStepCallback
from edgeembed.training.checkpoints import finished_state, last_complete_checkpoint, tensorboard_folder
from edgeembed.training.compilation import compiled_transformer

_DEV_METRIC = "eval_dev_spearman_cosine"
_LOSSES_FILE = "losses.safetensors"
_LOSS_SUM = "loss_sum"


class _Patience(EarlyStoppingCallback):  # type: ignore[misc]  # transformers carries no types
    """Early stopping; a class of its own, since transformers restores only one callback of a class."""


class _Trainer(SentenceTransformerTrainer):  # type: ignore[misc]  # sentence-transformers carries no types
    """A trainer for losses with parameters, in one process or several.

    The base class saves, and clears the gradients of, the student only. With several processes it averages the
    gradients of the student's own output; here they are summed (`edgeembed.processes`), also those of what the loss has
    of its own or takes from inside the student.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.loss_sum = torch.zeros(())  # over all steps, which transformers forgets when a run is resumed

    def training_step(self, *arguments: Any, **options: Any) -> torch.Tensor:
        self.trained_losses().zero_grad()
        loss: torch.Tensor = super().training_step(*arguments, **options)
        self.loss_sum = self.loss_sum.to(loss.device) + loss
        sum_gradients([*self.model.parameters(), *self.trained_losses().parameters()])
        return loss

    def compute_loss_context_manager(self) -> AbstractContextManager[None]:
        """Compute losses in float32 on every device: mixed precision is for the student's own forward pass."""
        return nullcontext()

    def override_model_in_loss(self, loss: nn.Module, _model: nn.Module) -> nn.Module:
        """Keep the student in the loss: in DistributedDataParallel it would average gradients, which are summed."""
        return loss

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the loader of the batches, of which each process has an equal share."""
        loader: DataLoader[Any] = super().get_train_dataloader()
        sampler = loader.batch_sampler
        if isinstance(sampler, BatchSamplerShard):
            sampler.set_epoch = sampler.batch_sampler.set_epoch  # which accelerate looks for in the shard alone
        return loader

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        super()._save(output_dir, state_dict)
        if output_dir is not None:
            state = {**self.trained_losses().state_dict(), _LOSS_SUM: self.loss_sum}
            save_file(state, Path(output_dir) / _LOSSES_FILE)

    def _load_from_checkpoint(self, checkpoint_path: str) -> None:
        super()._load_from_checkpoint(checkpoint_path)
        state = load_file(Path(checkpoint_path) / _LOSSES_FILE)
        self.loss_sum = state.pop(_LOSS_SUM)
        self.trained_losses().load_state_dict(state)

    def _load_best_model(self) -> None:
        """Load the best checkpoint from this run's folder; the base class keeps the last weights if that fails."""
        loss_sum = self.loss_sum
        self._load_from_checkpoint(str(Path(self.args.output_dir) / Path(self.state.best_model_checkpoint).name))
        self.loss_sum = loss_sum

    def load_finished(self, checkpoint: str, state: TrainerState) -> None:
        """Load what a training kept that has ended with a checkpoint, instead of training further.

        Args:
            checkpoint: The checkpoint.
            state: The trainer's state in it.
        """
        self.state = state
        self._load_from_checkpoint(checkpoint)
        if state.best_model_checkpoint is not None:
            self._load_best_model()

    def trained_losses(self) -> nn.Module:
        """Return the part of the loss that is trained with the student, or kept in checkpoints."""
        modules: nn.Module = getattr(self.loss, "trained", nn.ModuleList())
        return modules

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Collect no model card: the student's folder has one of its own."""


@dataclass(frozen=True)
class StageResult:
    """Result of a stage.

    Attributes:
        loss: Mean loss of all steps.
        final_loss: Mean loss of the last logged steps: at least a tenth of all, or 50 if that is fewer.
        dev_spearman: Spearman correlation x100 of the kept weights on the development set; None without one.
        history: Step and mean loss since the step before, of every logged step.
        steps: Number of training steps.
    """

    loss: float
    final_loss: float
    dev_spearman: float | None
    history: tuple[tuple[int, float], ...]
    steps: int


def check_trainer_options(callbacks: Sequence[TrainerCallback], report_to: Sequence[str]) -> None:
    """Check callbacks and integrations before any work.

    Args:
        callbacks: Callbacks of the Hugging Face trainer.
        report_to: Names of the trainer's integrations, such as "tensorboard" or "wandb".

    Raises:
        InputError: If a callback is not one, or an integration is unknown or not installed.
    """
    if isinstance(report_to, str) or not isinstance(report_to, Sequence):
        raise InputError(f"report_to is {report_to!r}; expected a list of integrations, such as ['tensorboard']")
    if not isinstance(callbacks, Sequence):
        raise InputError(f"callbacks is {callbacks!r}; expected a list of TrainerCallback")
    for callback in callbacks:
        if not isinstance(callback, TrainerCallback):
            raise InputError(f"callbacks holds {callback!r}; expected instances of transformers.TrainerCallback")
    for name in report_to:
        try:
            for integration in get_reporting_integration_callbacks([name]):
                integration()
        except ValueError as error:
            raise InputError(f"report_to is {list(report_to)!r}: {' '.join(str(error).split())}") from error
        except (RuntimeError, ImportError) as error:  # transformers' reason may advise another PyTorch
            raise InputError(
                f"report_to names {name}, whose package is not installed; expected it: pip install {name}"
            ) from error


@isolated_precision()
def train_stage(  # noqa: PLR0913  # everything that a stage is made of
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
    report_to: Sequence[str] = (),
    logs: Path | None = None,
) -> StageResult:
    """Train a student for one stage, in place.

    Args:
        student: The student.
        dataset: The data, as `stage_dataset` returns it.
        loss: The loss, as `build_loss` returns it.
        stage: The stage's settings.
        checkpoints: Folder for the stage's checkpoints.
        resume: Whether to continue from the last checkpoint there. A resumed stage ends with the same weights as one
            that was never interrupted.
        seed: Decides the order of the sentences, and dropout.
        device: A torch device.
        dev: Scored sentence pairs. The checkpoint that scores best on them is kept, instead of the last.
        callbacks: Callbacks of the Hugging Face trainer.
        report_to: The trainer's integrations that log the stage, such as "tensorboard" or "wandb".
        logs: Folder for TensorBoard's logs; None for one in `checkpoints`.

    Returns:
        The losses, and the score on `dev`.

    Raises:
        InputError: If checkpoints cannot be read or written; the message states the system's reason.
    """
    patience = _patient_evaluations(stage, len(dataset))
    early_stopping = [_Patience(patience)] if dev and stage.patience else []
    last_step = LastStepCallback(evaluates=dev is not None)
    with tensorboard_folder(logs) as folder_options:
        trainer = _Trainer(
            model=student,
            args=_arguments(
                stage,
                len(dataset),
                checkpoints,
                seed=seed,
                device=device,
                selects=dev is not None,
                report_to=list(report_to),
                **folder_options,
            ),
            train_dataset=dataset,
            loss=loss,
            evaluator=None if dev is None else _evaluator(dev),
            callbacks=[*callbacks, *early_stopping, last_step],
        )
    trainer.remove_callback(PrinterCallback)  # it prints to stdout, which is for results
    if process_index():
        torch.manual_seed(seed + process_index())  # its rows need other dropout than those of the main process
    checkpoint = last_complete_checkpoint(checkpoints) if resume else None
    finished = None if checkpoint is None else finished_state(checkpoint)
    try:
        with warnings.catch_warnings(), compiled_transformer(student) if stage.compile else nullcontext():
            # A resumed run rightly restores the schedule before the optimizer has made a step in this process.
            warnings.filterwarnings("ignore", r"Detected call of `lr_scheduler\.step\(\)` before", UserWarning)
            # For checkpoints less than a second apart the trainer orders them by number, which is right as well.
            warnings.filterwarnings("ignore", "mtime may not be reliable", UserWarning)
            if checkpoint is None or finished is None:
                trainer.train(resume_from_checkpoint=checkpoint)
            else:
                trainer.load_finished(checkpoint, finished)
    except BrokenPipeError:  # the reader of the progress went away, which is no fault of the checkpoints
        raise
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"cannot read or write the checkpoints in {checkpoints}: {_reason(error)}; expected a readable and "
            "writable folder with free space: check it or choose another --cache"
        ) from error
    # The trainer leaves its autocast around the student, which would round the embeddings of a later encode().
    trainer.accelerator.unwrap_model(student, keep_fp32_wrapper=False)
    student.eval()
    return _stage_result(trainer)


def _stage_result(trainer: _Trainer) -> StageResult:
    state = trainer.state
    history = tuple((entry["step"], float(entry["loss"])) for entry in state.log_history if "loss" in entry)
    best = state.best_metric
    return StageResult(
        loss=float(trainer.loss_sum) / state.global_step,
        final_loss=_final_loss(history, int(trainer.args.logging_steps)),
        dev_spearman=None if best is None else 100 * float(best),
        history=history,
        steps=state.global_step,
    )


def _final_loss(history: Sequence[tuple[int, float]], steps: int) -> float:
    """Return the mean loss of the last logged steps, at least as many as given if there are so many."""
    total = count = 0.0
    for (before, _), (last, loss) in zip([(0, 0.0), *history][-2::-1], reversed(history), strict=True):
        total, count = total + (last - before) * loss, count + last - before
        if count >= steps:
            break
    return total / count


def stage_steps(stage: StageSettings, count: int) -> int:
    """Return the number of steps of a stage, as transformers counts them.

    Args:
        stage: The stage.
        count: Number of rows of its dataset.
    """
    return math.ceil(stage.epochs * math.ceil(count / stage.batch_size))


def _arguments(
    stage: StageSettings,
    count: int,
    checkpoints: Path,
    *,
    seed: int,
    device: str,
    selects: bool,
    **options: Any,
) -> SentenceTransformerTrainingArguments:
    sampler: Any = LengthGroupedSampler if stage.group_by_length else BatchSamplers.BATCH_SAMPLER
    if stage.compares_pairs:  # pairs that share a text would be false negatives of each other
        sampler = BatchSamplers.NO_DUPLICATES
    elif stage.uses_pairs or stage.uses_scored_pairs:  # not sorted by length
        sampler = BatchSamplers.BATCH_SAMPLER
    steps = stage_steps(stage, count)
    arguments = SentenceTransformerTrainingArguments(
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
        save_total_limit=2 if selects else 1,  # the best, and the last, from which a resumed run sees that it has ended
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
        dataloader_drop_last=process_count() > 1,  # false below: it would warn that it sets it
        accelerator_config={"split_batches": True},  # each process has a share of every batch
        logging_steps=max(1, min(50, steps // 10)),
        restore_callback_states_from_checkpoint=True,  # early stopping counts on where it was
        **options,
    )
    # What sentence-transformers chooses for several processes suits neither shared batches nor torch 2.13's warnings.
    arguments.dataloader_drop_last, arguments.ddp_broadcast_buffers = False, None
    return arguments


def _patient_evaluations(stage: StageSettings, count: int) -> int:
    """Return the number of evaluations within a stage's patience, which is in epochs."""
    steps = stage.patience * -(-count // stage.batch_size)
    return max(1, math.ceil(steps / stage.checkpoint_steps))


def _evaluator(dev: SentencePairs) -> EmbeddingSimilarityEvaluator:
    return EmbeddingSimilarityEvaluator(
        dev.first, dev.second, dev.scores.tolist(), main_similarity="cosine", name="dev", write_csv=False
    )


def seed_everything(seed: int) -> None:
    """Seed the random generators of torch and NumPy."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # libraries below still use the global generator


def _reason(error: Exception) -> str:
    """Return what failed and on which file, in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
