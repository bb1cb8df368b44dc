"""Export a text classifier as a bundle."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import onnx
from edgeembed_runtime import Bundle, Classifier
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import BUNDLE_FOLDER
from edgeembed_runtime.parity import ClassifierParity
from edgeembed_runtime.pipeline import Text
from edgeembed_runtime.report import Report
from edgeembed_runtime.storage.atomic import check_output_path
from edgeembed_runtime.verification import golden_inputs

from edgeembed_exporters.bundle.assembly import Measured, assemble, folder_size_bytes
from edgeembed_exporters.bundle.golden import write_golden_predictions
from edgeembed_exporters.bundle.hub_files import encoder_config, write_json
from edgeembed_exporters.bundle.writers import GraphWriter
from edgeembed_exporters.bundle_settings import BundleSettings
from edgeembed_exporters.cards.card import bundle_card
from edgeembed_exporters.classification.graph import ClassifierGraph, ClassifierModel, trace_classifier
from edgeembed_exporters.classification.parity import check_predictions, compare_predictions
from edgeembed_exporters.fusion import fuse
from edgeembed_exporters.gate import cutting_tokenizer, default_sentences, split_sentences
from edgeembed_exporters.latency import check_latency, median_latency_ms
from edgeembed_exporters.model_spec import ModelSpec, check_attention, check_token_rows, inspect_model, mask_tokens
from edgeembed_exporters.provenance import Provenance
from edgeembed_exporters.settings import spelled
from edgeembed_exporters.soundness import check_finite
from edgeembed_exporters.steps import StepListener, StepTimer

_NOT_MEASURED = ClassifierParity(0, 0.0, 0.0, 0.0, ())


@dataclass(frozen=True)
class ClassifierExportReport(Report):
    """The result of exporting a classifier.

    Attributes:
        path: The bundle's folder.
        size_bytes: The size of all its files.
        parameters: The number of weights.
        labels: The labels.
        precision: The precision of the weights.
        parity: The agreement with the classifier, on texts that the bundle was not calibrated on.
        latency_ms: The median milliseconds per text; None if there is no limit on it.
        seconds: The duration of each step.
    """

    path: Path
    size_bytes: int
    parameters: int
    labels: tuple[str, ...]
    precision: str
    parity: ClassifierParity
    latency_ms: float | None
    seconds: dict[str, float]

    def __str__(self) -> str:
        """Return the result in two lines."""
        parity = self.parity
        return (
            f"{self.path}: {self.size_bytes / 1e6:.2f} MB, {self.parameters:,} parameters, {len(self.labels)} labels, "
            f"{self.precision}\n"
            f"same label as the classifier for {parity.label_agreement:.2%} of {parity.sentences:,} texts, "
            f"probabilities differ by at most {parity.max_probability_difference:.4f}"
        )


def export_classifier(
    model: ClassifierModel,
    out: str | os.PathLike[str],
    settings: BundleSettings | None = None,
    *,
    provenance: Provenance | None = None,
    sentences: Iterable[str] | None = None,
    force: bool = False,
    on_step: StepListener | None = None,
) -> ClassifierExportReport:
    """Export a classifier as a bundle, unless the bundle misses a limit.

    Args:
        model: The classifier. It is not changed.
        out: The bundle's folder.
        settings: The settings; None for the defaults. Those that only encoders have must keep their defaults.
        provenance: The classifier's origin; None if nothing is known.
        sentences: Real text on which the bundle is compared with the classifier; a few hundred texts are enough. A
            classifier of pairs reads each text with the next one. None uses the text in this package. If the precision
            calibrates, one in eight (at most 64) is used for that instead.
        force: Whether to replace an existing bundle.
        on_step: Called at each step, for progress.

    Returns:
        The report.

    Raises:
        InputError: If the encoder has an unsupported part, a setting does not fit, or `out` exists or cannot be
            written.
        GateError: If the predictions, the size or the latency miss a limit. Nothing is written then.
    """
    out, settings, timer = Path(out), settings or BundleSettings(), StepTimer(on_step)
    check_output_path(out, force=force, kind=BUNDLE_FOLDER)
    settings = settings.replace(name=settings.name or out.resolve().name)
    settings.check_kind("classifier")
    check_finite(model.encoder)
    check_finite(model.head)
    spec = replace(inspect_model(model.encoder), prompts={}, default_prompt_name=None)
    check_token_rows(spec)
    if settings.max_seq_length is not None:
        spec = replace(spec, max_seq_length=_max_seq_length(settings.max_seq_length, spec))
    check_attention(spec)
    calibration, held_out = split_sentences(
        default_sentences() if sentences is None else sentences,
        cutting_tokenizer(spec),
        calibrates=settings.calibrates,
    )
    inputs = golden_inputs(held_out, is_pairs=model.is_pairs)

    graph = ClassifierGraph(spec, model.head)

    def traced() -> onnx.ModelProto:
        with timer.step("trace"):
            unfused = trace_classifier(graph, spec.max_seq_length)
        with timer.step("fuse"):
            return fuse(unfused, mask_tokens(spec))

    calibration_inputs = golden_inputs(calibration, is_pairs=model.is_pairs) if calibration else []
    writer = _ClassifierWriter(model, graph, traced, spec, calibration_inputs)
    task = _ClassifierTask(settings, model, inputs, timer)
    precision, measured = assemble(
        out, task, writer, spec, settings, provenance or Provenance(), force=force, timer=timer
    )
    return ClassifierExportReport(
        path=out,
        size_bytes=folder_size_bytes(out),
        parameters=writer.num_parameters,
        labels=model.labels,
        precision=precision,
        parity=measured.parity,
        latency_ms=measured.latency_ms,
        seconds=timer.seconds,
    )


class _ClassifierWriter(GraphWriter):
    """Writes a classifier's graph, with the config.json by which transformers.js runs it."""

    def __init__(
        self,
        model: ClassifierModel,
        graph: ClassifierGraph,
        trace: Callable[[], onnx.ModelProto],
        spec: ModelSpec,
        calibration: Sequence[Text],
    ) -> None:
        super().__init__(graph, trace, spec, calibration)
        self._config = _hub_config(graph, model)

    def write(self, content: bytes, precision: str, folder: Path) -> None:
        super().write(content, precision, folder)
        write_json(folder / "config.json", self._config)


@dataclass(frozen=True)
class _ClassifierTask:
    """Checks and describes the bundle of a classifier.

    Attributes:
        settings: The settings of the bundle.
        model: The classifier.
        inputs: Texts, or pairs of texts, that the bundle was not calibrated on.
        timer: Times the steps.
    """

    settings: BundleSettings
    model: ClassifierModel
    inputs: Sequence[Text]
    timer: StepTimer

    def manifest_fields(self) -> dict[str, Any]:
        task = {"task": "classification", "labels": self.model.labels, "is_pairs": self.model.is_pairs}
        return {**task, "role": None, "roles": [], "parity": asdict(_NOT_MEASURED)}

    def check(self, bundle: Bundle, precision: str) -> Measured[ClassifierParity]:
        settings, timer, latency_ms = self.settings, self.timer, None
        with timer.step("parity"):
            parity = compare_predictions(self.model, bundle, self.inputs)
        check_predictions(
            parity,
            settings.limit("min_label_agreement", precision),
            settings.limit("max_probability_difference", precision),
            precision,
        )
        if settings.max_latency_ms is not None:
            with timer.step("latency"):
                latency_ms = _measure_latency_ms(bundle, self.inputs)
            check_latency(latency_ms, settings.max_latency_ms)
        return Measured(parity, None, latency_ms)

    def write_golden(self, folder: Path, bundle: Bundle) -> None:
        write_golden_predictions(folder, Classifier(bundle))

    def card(self, manifest: dict[str, Any], *, size_bytes: int, command: str | None) -> str:
        return bundle_card(manifest, size_bytes=size_bytes, command=command)


def _max_seq_length(asked: int, spec: ModelSpec) -> int:
    if not 3 <= asked <= spec.max_seq_length:
        raise InputError(
            f"{spelled('max_seq_length')} is {asked}; expected 3 to {spec.max_seq_length}, the classifier's maximum"
        )
    return asked


def _hub_config(graph: ClassifierGraph, model: ClassifierModel) -> dict[str, Any]:
    """Return the content of config.json, by which transformers.js runs a text-classification pipeline."""
    id2label = {str(index): label for index, label in enumerate(model.labels)}
    label2id = {label: index for index, label in enumerate(model.labels)}
    return {**encoder_config(graph.encoder.config), "id2label": id2label, "label2id": label2id}


def _measure_latency_ms(bundle: Bundle, inputs: Sequence[Text]) -> float:
    classifier = Classifier(bundle, threads=1)
    return median_latency_ms(
        lambda text: classifier.predict_proba(text, on_truncate="ignore", on_unknown="ignore"), inputs
    )
