"""A classifier learns: from labels, and from what a teacher says of the same examples."""

import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import (
    EarlyStoppingCallback,
    EvalPrediction,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from edgeembed.hardware import attention_in_training, has_bf16, own_precision
from edgeembed.launching import refuse_several_processes
from edgeembed.objectives.masked_language import soft_cross_entropy
from edgeembed.tasks.examples import Examples, Task
from edgeembed.tasks.measures import Measure, measures
from edgeembed.tasks.model import TaskModel
from edgeembed.tasks.settings import TaskSettings
from edgeembed.tasks.teachers import Logits
from edgeembed.training import seed_everything


@dataclass(frozen=True)
class TaskReport:
    """How learning went.

    Attributes:
        measures: All measures x100 on the development part, of the weights that were kept.
        history: The chosen measure after each pass.
        parameters: Numbers of encoder and classifier together.
        classifier_parameters: Those of the classifier alone.
        majority_accuracy: Accuracy x100 on the development part of always naming its most common class; None for
            scores.
        warning: One line if the classifier is no better than that, or orders no scores; None otherwise.
    """

    measures: dict[str, float]
    history: tuple[float, ...]
    parameters: int
    classifier_parameters: int
    majority_accuracy: float | None
    warning: str | None


@own_precision()
def finetune(
    encoder: SentenceTransformer,
    task: Task,
    settings: TaskSettings,
    *,
    measure: Measure,
    teacher: Logits | None = None,
    device: str = "cpu",
    callbacks: Sequence[TrainerCallback] = (),
) -> tuple[TaskModel, TaskReport]:
    """Teach a classifier, and the encoder below it (section 3.2: task-specific distillation, or plain fine-tuning).

    Args:
        encoder: What it stands on; changed in place.
        task: What it learns.
        settings: How.
        measure: The measure on the development part by which weights are kept.
        teacher: A teacher's logits of the training part, float32 (examples, classes); None to learn from labels alone.
        device: A torch device.
        callbacks: Told of the trainer's steps.

    Returns:
        The classifier with the weights that did best, and how it went.

    Raises:
        InputError: If the task has no such measure, the encoder gives nothing that the classifier could read, or
            several processes were started.
    """
    refuse_several_processes()
    known = measures(task, task.dev.classes)
    if measure not in known:
        raise InputError(f"the measure is {measure}, which this task has not; expected one of: {', '.join(known)}")
    seed_everything(settings.seed)
    model = TaskModel(encoder, settings, task.names, is_pairs=task.is_pairs)
    with tempfile.TemporaryDirectory() as folder:
        trainer = _trainer(model, task, measure, teacher, folder, device)
        for callback in callbacks:
            trainer.add_callback(callback)
        with warnings.catch_warnings(), attention_in_training(device):
            # Checkpoints less than a second apart; the trainer then orders them by number, which is right as well.
            warnings.filterwarnings("ignore", "mtime may not be reliable", UserWarning)
            trainer.train()
        # The trainer leaves its autocast around the model, which would round what the classifier says from now on.
        trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
        history = [entry[f"eval_{measure}"] for entry in trainer.state.log_history if f"eval_{measure}" in entry]
        found = trainer.predict(_Rows(task.dev, None)).predictions.argmax(axis=1)
    given = measures(task, found)
    majority = _majority_accuracy(task)
    report = TaskReport(
        measures=given,
        history=tuple(history),
        parameters=sum(weight.numel() for weight in model.parameters()),
        classifier_parameters=sum(weight.numel() for weight in model.classifier.parameters()),
        majority_accuracy=majority,
        warning=_warning(given, majority),
    )
    return model.cpu().eval(), report


def _majority_accuracy(task: Task) -> float | None:
    if task.is_scored:
        return None
    ((_, count),) = Counter(task.dev.classes.tolist()).most_common(1)
    return 100 * count / len(task.dev.classes)


def _warning(given: dict[str, float], majority: float | None) -> str | None:
    hint = "give more or cleaner examples, or more epochs (--set epochs=50)"
    if majority is None:
        if given["spearman"] > 0:
            return None
        return f"the classifier does not order the scores (Spearman {given['spearman']:.1f} x100); {hint}"
    if given["accuracy"] > majority:
        return None
    return (
        f"the classifier's accuracy of {given['accuracy']:.1f} % is no better than always naming the most common class "
        f"({majority:.1f} %); {hint}"
    )


class _Rows(torch.utils.data.Dataset[dict[str, Any]]):
    """Row numbers; the collator looks up what stands there."""

    def __init__(self, examples: Examples, teacher: Logits | None) -> None:
        self.examples, self.teacher = examples, teacher

    def __len__(self) -> int:
        return len(self.examples.first)

    def __getitem__(self, row: int) -> dict[str, Any]:
        second = self.examples.second[row] if self.examples.second else ""
        given = {"first": self.examples.first[row], "second": second, "class": self.examples.classes[row]}
        return given if self.teacher is None else {**given, "teacher": self.teacher[row]}


class _Collator:
    def __init__(self, model: TaskModel) -> None:
        self.model = model

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        texts = self.model.read([row["first"] for row in rows], [row["second"] for row in rows])
        batch = {"texts": texts, "labels": torch.tensor([int(row["class"]) for row in rows])}
        if "teacher" in rows[0]:
            batch["teacher"] = torch.from_numpy(np.stack([row["teacher"] for row in rows]))
        return batch


class _TaskTrainer(Trainer):  # type: ignore[misc]  # transformers carries no types
    """The trainer, with the loss of section 2.2: alpha of the labels' cross-entropy, the rest of the teacher's."""

    optimizer: torch.optim.Optimizer | None

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, **_: Any) -> Any:
        logits = model(inputs["texts"])
        loss = nn.functional.cross_entropy(logits, inputs["labels"])
        if "teacher" in inputs:
            settings = self.model.settings
            soft = soft_cross_entropy(logits, inputs["teacher"], settings.temperature).mean()
            loss = settings.hard_share * loss + (1 - settings.hard_share) * soft
        return (loss, {"logits": logits}) if return_outputs else loss

    def create_optimizer(self, *_: Any) -> torch.optim.Optimizer:
        if self.optimizer is None:
            settings = self.model.settings
            learned = [weight for weight in self.model.encoder.parameters() if weight.requires_grad]
            groups: list[dict[str, Any]] = [
                {"params": list(self.model.classifier.parameters()), "lr": settings.classifier_learning_rate}
            ]
            if learned:
                groups.append({"params": learned, "lr": settings.learning_rate})
            self.optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
        return self.optimizer

    def prediction_step(self, model: nn.Module, inputs: dict[str, Any], *_: Any, **__: Any) -> tuple[Any, Any, Any]:
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad():
            loss, outputs = self.compute_loss(model, inputs, return_outputs=True)
        return loss.detach(), outputs["logits"].detach(), inputs["labels"]


def _trainer(
    model: TaskModel, task: Task, measure: Measure, teacher: Logits | None, folder: str, device: str
) -> Trainer:
    settings = model.settings
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=max(64, settings.batch_size),
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model=measure,
        greater_is_better=True,
        label_names=["labels"],
        remove_unused_columns=False,
        use_cpu=device == "cpu",
        dataloader_pin_memory=device != "cpu",
        disable_tqdm=True,
        report_to=[],
        bf16=has_bf16(device),
        seed=settings.seed,
        data_seed=settings.seed,
    )

    def measured(prediction: EvalPrediction) -> dict[str, float]:
        return measures(task, prediction.predictions.argmax(axis=1))

    trainer = _TaskTrainer(
        model=model,
        args=arguments,
        train_dataset=_Rows(task.train, teacher),
        eval_dataset=_Rows(task.dev, None),
        data_collator=_Collator(model),
        compute_metrics=measured,
        callbacks=[EarlyStoppingCallback(settings.patience)],
    )
    trainer.remove_callback(PrinterCallback)  # it prints to stdout, which belongs to results
    return trainer
