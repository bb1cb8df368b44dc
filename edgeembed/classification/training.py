"""Train a classifier with the Hugging Face `Trainer`, and compute the metrics of GLUE."""

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_runtime.errors import InputError
from pydantic import Field
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from torch import nn
from transformers import (
    EarlyStoppingCallback,
    EvalPrediction,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from edgeembed.classification.examples import ClassificationData, Examples
from edgeembed.classification.model import TextClassifier
from edgeembed.classification.teachers import Logits
from edgeembed.hardware import attention_in_training, has_bf16, isolated_precision
from edgeembed.losses.soft_cross_entropy import soft_cross_entropy
from edgeembed.students.cmow import MatrixEmbedding
from edgeembed.training.checkpoints import tensorboard_folder
from edgeembed.validation import Settings

_TOKENIZED_AT_ONCE = 1_024

Metric = Literal["accuracy", "f1", "matthews", "accuracy-f1", "pearson-spearman"]


class TrainingSettings(Settings):
    """Hyperparameters of a classifier's training.

    Attributes:
        hard_label_weight: The weight of the cross-entropy with the labels if there is a teacher; the rest is the
            weight of the cross-entropy with the teacher's soft targets (alpha in "Cross-architecture distillation
            using bidirectional CMOW embeddings", section 2.2).
        temperature: The temperature by which both models' logits are divided for the soft targets (T there).
        epochs: The maximum number of epochs.
        patience: The number of epochs without a better metric on the development split after which training stops.
        batch_size: Examples per step.
        learning_rate: The encoder's initial learning rate for AdamW, which falls linearly to 0.
        classifier_learning_rate: The head's initial learning rate, which also falls linearly to 0. It is larger,
            because the head starts from random weights: at the encoder's rate, training on few or hard examples ends
            before the head tells the classes apart.
        trains_encoder: Whether the encoder is trained too.
    """

    hard_label_weight: float = Field(default=0.5, ge=0, le=1)
    temperature: float = Field(default=1.0, gt=0)
    epochs: int = Field(default=20, ge=1)
    patience: int = Field(default=5, ge=1)
    batch_size: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=1e-4, gt=0)
    classifier_learning_rate: float = Field(default=1e-3, gt=0)
    trains_encoder: bool = True


@dataclass(frozen=True)
class TrainingResult:
    """The result of training a classifier.

    Attributes:
        metrics: All metrics on the development split, times 100, of the weights that were kept.
        history: The chosen metric after each epoch.
    """

    metrics: dict[str, float]
    history: tuple[float, ...]


@isolated_precision()
def train_classifier(  # noqa: PLR0913  # what training needs
    model: TextClassifier,
    data: ClassificationData,
    settings: TrainingSettings,
    *,
    metric: Metric,
    teacher: Logits | None = None,
    device: str = "cpu",
    seed: int = 0,
    callbacks: Sequence[TrainerCallback] = (),
    report_to: Sequence[str] = (),
    logs: Path | None = None,
) -> TrainingResult:
    """Train a classifier in place, and keep the weights of the best epoch.

    Task-specific distillation, or plain fine-tuning without a teacher ("Cross-architecture distillation using
    bidirectional CMOW embeddings", section 3.2).

    Args:
        model: The classifier; afterwards it is on the CPU and in evaluation mode.
        data: The task's data.
        settings: The hyperparameters.
        metric: The metric on the development split by which the best epoch is chosen.
        teacher: A teacher's logits of the training split, float32 (examples, classes); None for labels alone.
        device: A torch device.
        seed: Decides the order of the examples, and dropout.
        callbacks: Callbacks for the Hugging Face trainer.
        report_to: Integrations of the trainer that log the training, such as "tensorboard".
        logs: Folder for TensorBoard's logs; None to keep none.

    Returns:
        The metrics.

    Raises:
        InputError: If the task has no such metric, or an integration is unknown or not installed.
    """
    check_metric(metric, data)
    for weight in model.encoder.parameters():
        weight.requires_grad_(settings.trains_encoder)
    with (
        _only_tokens_of(data, model),
        tempfile.TemporaryDirectory() as folder,
        tensorboard_folder(logs) as folder_options,
    ):
        options = {**folder_options, "report_to": list(report_to)}
        trainer = _ClassifierTrainer(
            settings,
            model=model,
            args=_arguments(settings, metric, folder, device, seed, options),
            train_dataset=_Rows(data.train, teacher),
            eval_dataset=_Rows(data.dev, None),
            data_collator=_Collator(model),
            compute_metrics=lambda prediction: _metrics_of(prediction, data),
            callbacks=[EarlyStoppingCallback(settings.patience), *callbacks],
        )
        trainer.remove_callback(PrinterCallback)  # it prints to stdout, which belongs to results
        with warnings.catch_warnings(), attention_in_training(device):
            # Checkpoints less than a second apart: the trainer then sorts them by number, which is right as well.
            warnings.filterwarnings("ignore", "mtime may not be reliable", UserWarning)
            trainer.train()
        # The trainer leaves its autocast around the model, which would round the logits of all later calls.
        trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
        history = tuple(row[f"eval_{metric}"] for row in trainer.state.log_history if f"eval_{metric}" in row)
        predicted = trainer.predict(_Rows(data.dev, None)).predictions.argmax(axis=1)
    model.cpu().eval()
    return TrainingResult(compute_metrics(data, predicted), history)


def _only_tokens_of(data: ClassificationData, model: TextClassifier) -> AbstractContextManager[None]:
    """Return a context in which a CMOW student holds the rows of the tokens of both splits alone."""
    first = model.encoder[0]
    if not isinstance(first, MatrixEmbedding):
        return nullcontext()
    found = {int(first.tokenizer.pad_token_id)}
    for split in (data.train, data.dev):
        for start in range(0, len(split), _TOKENIZED_AT_ONCE):
            rows = slice(start, start + _TOKENIZED_AT_ONCE)
            for texts in model.tokenize(split.first[rows], split.second[rows]):
                found.update(texts["input_ids"].flatten().tolist())
    return first.narrowed(torch.tensor(sorted(found), device=model.encoder.device))


def check_metric(metric: str, data: ClassificationData) -> None:
    """Raise InputError if a task has no such metric."""
    known = compute_metrics(data, data.dev.class_ids)
    if metric not in known:
        raise InputError(f"the metric is {metric}, which this task does not have; expected one of: {', '.join(known)}")


class _Rows(torch.utils.data.Dataset[dict[str, Any]]):
    """Examples by row number, with the teacher's logits if there is a teacher."""

    def __init__(self, examples: Examples, teacher: Logits | None) -> None:
        self.examples, self.teacher = examples, teacher

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, row: int) -> dict[str, Any]:
        second = self.examples.second[row] if self.examples.second else ""
        example = {"first": self.examples.first[row], "second": second, "class": self.examples.class_ids[row]}
        return example if self.teacher is None else {**example, "teacher": self.teacher[row]}


class _Collator:
    def __init__(self, model: TextClassifier) -> None:
        self.model = model

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        texts = self.model.tokenize([row["first"] for row in rows], [row["second"] for row in rows])
        batch = {"texts": texts, "labels": torch.tensor([int(row["class"]) for row in rows])}
        if "teacher" in rows[0]:
            batch["teacher"] = torch.from_numpy(np.stack([row["teacher"] for row in rows]))
        return batch


class _ClassifierTrainer(Trainer):  # type: ignore[misc]  # transformers carries no types
    """The Hugging Face trainer, with the cross-entropy of labels and soft targets and two learning rates.

    The loss is alpha times the cross-entropy with the labels plus (1 - alpha) times that with the teacher's soft
    targets ("Cross-architecture distillation using bidirectional CMOW embeddings", section 2.2).
    """

    optimizer: torch.optim.Optimizer | None

    def __init__(self, settings: TrainingSettings, **options: Any) -> None:
        super().__init__(**options)
        self.settings = settings

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, **_: Any) -> Any:
        logits = model(inputs["texts"])
        loss = nn.functional.cross_entropy(logits, inputs["labels"])
        if "teacher" in inputs:
            alpha = self.settings.hard_label_weight
            soft = soft_cross_entropy(logits, inputs["teacher"], self.settings.temperature).mean()
            loss = alpha * loss + (1 - alpha) * soft
        return (loss, {"logits": logits}) if return_outputs else loss

    def create_optimizer(self, *_: Any) -> torch.optim.Optimizer:
        if self.optimizer is None:
            encoder = [weight for weight in self.model.encoder.parameters() if weight.requires_grad]
            groups: list[dict[str, Any]] = [
                {"params": list(self.model.head.parameters()), "lr": self.settings.classifier_learning_rate}
            ]
            if encoder:
                groups.append({"params": encoder, "lr": self.settings.learning_rate})
            self.optimizer = torch.optim.AdamW(groups, weight_decay=0.0, fused=True)
        return self.optimizer

    def prediction_step(self, model: nn.Module, inputs: dict[str, Any], *_: Any, **__: Any) -> tuple[Any, Any, Any]:
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad():
            loss, outputs = self.compute_loss(model, inputs, return_outputs=True)
        return loss.detach(), outputs["logits"].detach(), inputs["labels"]


def _metrics_of(prediction: EvalPrediction, data: ClassificationData) -> dict[str, float]:
    return compute_metrics(data, prediction.predictions.argmax(axis=1))


def _arguments(
    settings: TrainingSettings, metric: Metric, folder: str, device: str, seed: int, options: Mapping[str, Any]
) -> TrainingArguments:
    return TrainingArguments(
        output_dir=folder,
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=max(64, settings.batch_size),
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        save_total_limit=1,
        save_only_model=True,
        load_best_model_at_end=True,
        metric_for_best_model=metric,
        greater_is_better=True,
        label_names=["labels"],
        remove_unused_columns=False,
        use_cpu=device == "cpu",
        dataloader_pin_memory=device != "cpu",
        disable_tqdm=True,
        bf16=has_bf16(device),
        seed=seed,
        data_seed=seed,
        **options,
    )


def compute_metrics(data: ClassificationData, predicted: npt.NDArray[np.int64]) -> dict[str, float]:
    """Return all metrics of predictions on the development split, times 100.

    Args:
        data: The task's data.
        predicted: The predicted class indices of the development split, int64 (examples,).

    Returns:
        For scores, `pearson`, `spearman` and their mean `pearson-spearman`. For labels, `accuracy`; with two labels
        also `f1` of the second label, the Matthews correlation `matthews`, and the mean of accuracy and F1,
        `accuracy-f1`.
    """
    if data.dev.scores is not None:
        return _correlations(data.dev.scores, data.bin_centers(predicted))
    true = data.dev.class_ids
    metrics = {"accuracy": 100 * float(accuracy_score(true, predicted))}
    if len(data.labels) == 2:
        f1 = 100 * float(f1_score(true, predicted, zero_division=0.0))
        metrics |= {"f1": f1, "matthews": 100 * float(matthews_corrcoef(true, predicted))}
        metrics["accuracy-f1"] = (metrics["accuracy"] + f1) / 2
    return metrics


def _correlations(true: npt.NDArray[np.float64], predicted: npt.NDArray[np.float64]) -> dict[str, float]:
    # Correlations with a constant are not defined; they count as 0.
    is_constant = len(set(predicted)) < 2
    pearson = 0.0 if is_constant else 100 * float(pearsonr(true, predicted).statistic)
    spearman = 0.0 if is_constant else 100 * float(spearmanr(true, predicted).statistic)
    return {"pearson": pearson, "spearman": spearman, "pearson-spearman": (pearson + spearman) / 2}
