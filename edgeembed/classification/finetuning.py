"""Fine-tune an encoder as a text classifier: read the data, train, save, report."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from edgeembed_exporters.cards.card import front_matter, render_card
from edgeembed_exporters.cards.paths import without_paths
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.report import Report
from edgeembed_runtime.storage.atomic import check_output_path
from transformers import TrainerCallback

from edgeembed.arguments import check_argument_types, check_path, check_seed
from edgeembed.classification.examples import (
    ClassificationData,
    ScoreRange,
    check_score_range,
    read_classification_data,
)
from edgeembed.classification.heads import HeadKind
from edgeembed.classification.model import CLASSIFIER_FOLDER, Encoding, TextClassifier
from edgeembed.classification.teachers import teacher_logits
from edgeembed.classification.training import Metric, TrainingResult, TrainingSettings, check_metric, train_classifier
from edgeembed.hardware import default_device
from edgeembed.models import ModelLike, load_model
from edgeembed.processes import check_single_process
from edgeembed.progress import Reporter, SilentReporter
from edgeembed.provenance import bundle_provenance
from edgeembed.recipe.loading import parse_override
from edgeembed.students.cmow import reinitialize
from edgeembed.training.callbacks import StepCallback
from edgeembed.training.checkpoints import default_logs
from edgeembed.training.trainer import check_trainer_options, seed_everything
from edgeembed.validation import validate

if TYPE_CHECKING:
    from datasets import Dataset

# Parts of a bundle's provenance that a classifier does not take from its encoder.
_STATED_BY_AN_EXPORT = {"command", "quality", "latency"}


@dataclass(frozen=True)
class ClassificationReport(Report):
    """The result of `finetune`.

    Attributes:
        path: The classifier's folder.
        labels: The labels, in the order of the classifier's outputs.
        metric: The metric by which the best epoch was chosen.
        metrics: All metrics on the development split, times 100.
        history: The chosen metric after each epoch.
        train_counts: The number of training examples of each label.
        dev_counts: The number of development examples of each label.
        parameters: The number of weights of encoder and head.
        head_parameters: The number of weights of the head.
        majority_accuracy: The accuracy, times 100, of always predicting the most common label of the development
            split; None for scores.
        warning: One line if the classifier is no better than that, or its correlation is not positive; else None.
    """

    path: Path
    labels: tuple[str, ...]
    metric: str
    metrics: dict[str, float]
    history: tuple[float, ...]
    train_counts: dict[str, int]
    dev_counts: dict[str, int]
    parameters: int
    head_parameters: int
    majority_accuracy: float | None
    warning: str | None

    def __str__(self) -> str:
        """Return the folder, the metrics and the number of parameters in one line."""
        metrics = ", ".join(f"{name} {value:.1f}" for name, value in self.metrics.items())
        examples = sum(self.dev_counts.values())
        return f"{self.path}: {metrics} (x100, on {examples:,} examples); {self.parameters:,} parameters"


@check_argument_types
def finetune(  # noqa: PLR0913  # one parameter per choice
    encoder: ModelLike,
    train: str | os.PathLike[str] | Dataset,
    dev: str | os.PathLike[str] | Dataset,
    out: str | os.PathLike[str],
    *,
    teacher: str | os.PathLike[str] | TextClassifier | None = None,
    cache: str | os.PathLike[str] | None = None,
    classifier: HeadKind = "mlp",
    encoding: Encoding = "joint",
    metric: Metric | None = None,
    score_range: ScoreRange | None = None,
    from_scratch: bool = False,
    overrides: Mapping[str, Any] | Sequence[str] = (),
    seed: int = 0,
    force: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
    report_to: Sequence[str] = (),
    reporter: Reporter | None = None,
) -> ClassificationReport:
    """Fine-tune an encoder and a classification head on labeled texts or pairs of texts.

    Args:
        encoder: A student's folder, an installed package with a model, a hub id, or a loaded model, which stays
            unchanged.
        train: The training split: a TSV or CSV file with a header, or a dataset. It has a column `label`, or `score`,
            which is binned by 0.2; and a column `text`, or two columns: `sentence1` and `sentence2`, `question` and
            `sentence`, or `premise` and `hypothesis`.
        dev: The development split, likewise. It selects the best epoch, and is what the metrics are measured on.
        out: The folder to write, for `TextClassifier.load`, and for `edgeembed export`.
        teacher: A classifier of the same task to distill from: a folder that `finetune` wrote, a transformers model
            for sequence classification, or a loaded classifier. Then half the loss is the cross-entropy with its
            predictions.
        cache: Folder for the teacher's predictions, which several runs may share; None computes them again.
        classifier: The head: "linear" or "mlp" on sentence embeddings; "cnn" or "bilstm" for CMOW students.
        encoding: For pairs: "joint" encodes the two texts as one sequence; "diffcat" encodes them separately, which
            suits encoders without attention, and cannot be exported.
        metric: The metric that selects the best epoch: "accuracy", "f1", "matthews", "accuracy-f1" or
            "pearson-spearman". None is accuracy for labels, and pearson-spearman for scores.
        score_range: The lowest and the highest bin of a column `score`; scores beyond belong to the nearest of the two.
            None is the range of the data. (1, 5) gives the 21 bins of STS-B in the CMOW paper.
        from_scratch: Whether to replace the weights of the encoder, a CMOW student, by random ones first.
        overrides: Fields of `TrainingSettings` to change: a mapping, or strings such as "epochs=5".
        seed: Decides the random weights, the order of the examples, and dropout.
        force: Whether to replace an existing classifier in `out`.
        callbacks: Callbacks for the Hugging Face trainer.
        report_to: Integrations of the Hugging Face trainer that log the training, such as "tensorboard" or "wandb".
            TensorBoard's logs are in `out`.logs.
        reporter: Receives the progress; None is silent.

    Returns:
        The report. Its field `path` is the folder.

    Raises:
        InputError: If an argument is wrong, before any training; or `out` cannot be written.
    """
    check_single_process()
    out, reporter = check_path("out", out), reporter or SilentReporter()
    check_output_path(out, force=force, kind=CLASSIFIER_FOLDER)
    cache = None if cache is None else check_path("cache", cache)
    check_seed(seed)
    _check_choice("classifier", classifier, get_args(HeadKind))
    _check_choice("encoding", encoding, get_args(Encoding))
    check_trainer_options(callbacks, report_to)
    settings = validate(TrainingSettings, _as_mapping(overrides), "settings")
    check_score_range(score_range)
    data = read_classification_data(train, dev, score_range)
    metric = metric or ("pearson-spearman" if data.is_scored else "accuracy")
    check_metric(metric, data)

    device, provenance = default_device(), _provenance(encoder)
    loaded = load_model(encoder) if isinstance(encoder, str | os.PathLike) else copy.deepcopy(load_model(encoder))
    loaded = reinitialize(loaded, seed) if from_scratch else loaded
    seed_everything(seed)
    model = TextClassifier(
        loaded.to(device),
        data.labels,
        head=classifier,
        encoding=encoding,
        is_pairs=data.is_pairs,
        is_scored=data.is_scored,
    )
    _note_obstacle(model, reporter)
    logits = None
    if teacher is not None:
        with reporter.step("teacher", len(data.train), "texts"):
            logits = teacher_logits(teacher, data, device, cache)
    total = settings.epochs * -(-len(data.train) // settings.batch_size)
    with reporter.step("train", total, "steps") as advance:
        result = train_classifier(
            model,
            data,
            settings,
            metric=metric,
            teacher=logits,
            device=device,
            seed=seed,
            callbacks=[StepCallback(advance), *callbacks],
            report_to=report_to,
            logs=default_logs(out),
        )
    report = _make_report(out, model, data, metric, result)
    if report.warning:
        reporter.note(f"warning: {report.warning}")
    details = {
        "metrics": result.metrics,
        "dev_examples": len(data.dev),
        "seed": seed,
        "settings": settings.model_dump(),
        "provenance": provenance,
    }
    card = classifier_card(
        out.resolve().name, model, metrics=result.metrics, examples=len(data.dev), provenance=provenance
    )
    model.save(out, details=details, card=card, force=force)
    return report


def _note_obstacle(model: TextClassifier, reporter: Reporter) -> None:
    """Say before the training that a classifier of this kind cannot be exported."""
    try:
        model.embedding_head()
    except InputError as error:
        reporter.note(f"warning: {error}")


def _make_report(
    out: Path, model: TextClassifier, data: ClassificationData, metric: str, result: TrainingResult
) -> ClassificationReport:
    majority = None if data.is_scored else 100 * max(data.counts(data.dev).values()) / len(data.dev)
    return ClassificationReport(
        path=out,
        labels=data.labels,
        metric=metric,
        metrics=result.metrics,
        history=result.history,
        train_counts=data.counts(data.train),
        dev_counts=data.counts(data.dev),
        parameters=sum(weight.numel() for weight in model.parameters()),
        head_parameters=sum(weight.numel() for weight in model.head.parameters()),
        majority_accuracy=majority,
        warning=_warning(result.metrics, majority),
    )


def _provenance(encoder: ModelLike) -> dict[str, Any]:
    """Return the encoder's origin, for the model card of an export."""
    origin = asdict(bundle_provenance(encoder))
    return {name: without_paths(value) for name, value in origin.items() if name not in _STATED_BY_AN_EXPORT}


def _as_mapping(overrides: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    if isinstance(overrides, str):
        raise InputError(f"overrides is {overrides!r}; expected a list such as ['epochs=5'], or a mapping")
    return dict(overrides) if isinstance(overrides, Mapping) else dict(map(parse_override, overrides))


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputError(f"{name} is {value!r}; expected one of: {', '.join(choices)}")


def _warning(metrics: Mapping[str, float], majority_accuracy: float | None) -> str | None:
    advice = "use more or cleaner examples, or more epochs (--set epochs=50)"
    if majority_accuracy is None:
        if metrics["spearman"] > 0:
            return None
        return f"the classifier does not rank the scores (Spearman {metrics['spearman']:.1f} x100); {advice}"
    if metrics["accuracy"] > majority_accuracy:
        return None
    return (
        f"the classifier's accuracy of {metrics['accuracy']:.1f} % is no better than always predicting the most common "
        f"label ({majority_accuracy:.1f} %); {advice}"
    )


def classifier_card(
    name: str, model: TextClassifier, *, metrics: Mapping[str, float], examples: int, provenance: Mapping[str, Any]
) -> str:
    """Return the model card as Markdown, with the front matter of the Hugging Face Hub.

    Args:
        name: The classifier's name.
        model: The classifier.
        metrics: Its metrics on the development split, times 100.
        examples: The number of examples in that split.
        provenance: The encoder's origin: `license`, `base_model` and `languages`.
    """
    return render_card(
        "classifier",
        front_matter(
            license=provenance.get("license"),
            base_model=provenance.get("base_model"),
            languages=provenance.get("languages") or (),
            library="edgeembed",
            task="text-classification",
            tags=["text-classification", "edgeembed"],
        ),
        name=name,
        is_pairs=model.is_pairs,
        labels=model.labels,
        examples=examples,
        metrics=metrics,
    )
