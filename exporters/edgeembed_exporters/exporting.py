"""Export a sentence-transformers model as a bundle."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx
from edgeembed_runtime import Bundle, Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import BUNDLE_FOLDER
from edgeembed_runtime.parity import Parity
from edgeembed_runtime.report import Report
from edgeembed_runtime.storage.atomic import check_output_path
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from edgeembed_exporters.bundle.assembly import Measured, assemble, folder_size_bytes
from edgeembed_exporters.bundle.golden import write_golden
from edgeembed_exporters.bundle.writers import NumpyWriter, OnnxWriter, check_torch_weights
from edgeembed_exporters.bundle_settings import BundleSettings
from edgeembed_exporters.cards.card import bundle_card
from edgeembed_exporters.cmow import read_matrices
from edgeembed_exporters.fusion import fuse
from edgeembed_exporters.gate import (
    OriginalParity,
    check_original_parity,
    check_parity,
    check_ranking,
    compare,
    compare_with_original,
    cutting_tokenizer,
    default_sentences,
    rank_figures,
    split_sentences,
)
from edgeembed_exporters.latency import check_latency, measure_latency_ms
from edgeembed_exporters.model_spec import ModelSpec, check_attention, check_token_rows, inspect_model, mask_tokens
from edgeembed_exporters.near_cosine import measure_near_cosine
from edgeembed_exporters.onnx.optimum import trace_with_optimum
from edgeembed_exporters.onnx.tracing import build_graph, trace
from edgeembed_exporters.provenance import Provenance
from edgeembed_exporters.rank_agreement import MIN_TEXTS
from edgeembed_exporters.reduction.pca_head import PcaHeadReport, add_pca_head, check_dim
from edgeembed_exporters.reduction.vocabulary_trimming import TrimReport, trim_vocabulary, with_vocabulary
from edgeembed_exporters.roles import apply_role, in_role, private_copy
from edgeembed_exporters.settings import spelled
from edgeembed_exporters.soundness import sound_model
from edgeembed_exporters.space import embedding_space
from edgeembed_exporters.steps import StepListener, StepTimer

TRACERS = {"torch": trace, "optimum": trace_with_optimum}


@dataclass(frozen=True)
class ExportReport(Report):
    """The result of an export.

    Attributes:
        path: The bundle's folder.
        size_bytes: The size of all its files.
        parameters: The number of weights.
        dimension: The dimension of an embedding.
        space: The name of the embedding space; see `edgeembed_runtime.manifest.Manifest`.
        precision: The precision of the weights.
        parity: The agreement with the model, on sentences that the bundle was not calibrated on.
        original_parity: The agreement with the model before it was reduced; None if it was not reduced.
        latency_ms: The median milliseconds per text; None if there is no limit on it.
        near_cosine: The threshold of the runtime's interests, given or measured; None if there were too few sentences.
        reduction: What trimming ("vocabulary") and the PCA head ("head") saved and cost; empty if there were none.
        seconds: The duration of each step.
    """

    path: Path
    size_bytes: int
    parameters: int
    dimension: int
    space: str
    precision: str
    parity: Parity
    original_parity: OriginalParity | None
    latency_ms: float | None
    near_cosine: float | None
    reduction: dict[str, TrimReport | PcaHeadReport]
    seconds: dict[str, float]

    def __str__(self) -> str:
        """Return the result in a few lines."""
        cosines = (
            f"cosine to the model over {self.parity.sentences:,} sentences: "
            f"worst {self.parity.min_cosine:.5f}, mean {self.parity.mean_cosine:.5f}"
        )
        lines = [
            *map(str, self.reduction.values()),
            (
                f"{self.path}: {self.size_bytes / 1e6:.2f} MB, {self.parameters:,} parameters, "
                f"{self.dimension} dimensions, {self.precision}, space {self.space}"
            ),
            ", ".join([cosines, *rank_figures(self.parity)]),
        ]
        if self.original_parity:
            lines.append(f"before it was trimmed or reduced: {self.original_parity}")
        return "\n".join(lines)


def export(  # noqa: PLR0913  # model, folder, settings, and the text for each purpose
    model: SentenceTransformer,
    out: str | os.PathLike[str],
    settings: BundleSettings | None = None,
    *,
    provenance: Provenance | None = None,
    sentences: Iterable[str] | None = None,
    vocabulary: Tokenizer | None = None,
    trim_to: Iterable[str] | None = None,
    fit: Iterable[str] | None = None,
    force: bool = False,
    on_step: StepListener | None = None,
) -> ExportReport:
    """Export a model as a bundle, unless the bundle misses a limit.

    Args:
        model: A transformers encoder with any pooling, a matrix student, or a StaticEmbedding; then any Dense,
            LayerNorm and Normalize modules. It is not changed.
        out: The bundle's folder.
        settings: The settings; None for the defaults.
        provenance: The model's origin; None if nothing is known.
        sentences: Real text to compare bundle and model on; a few hundred are enough. It is read after the model is
            inspected. None uses the text in this package. If the precision calibrates, one in eight (at most 64) is
            used for that instead.
        vocabulary: A tokenizer trimmed from the model's; the bundle gets its tokens only.
        trim_to: Or text whose tokens are kept. It is read once and may be larger than memory.
        fit: Text on which a PCA head of `settings.dim` dimensions is fitted.
        force: Whether to replace an existing bundle.
        on_step: Called at each step, for progress.

    Raises:
        InputError: If the model has an unsupported part, the arguments do not fit together or the model, or `out`
            exists or cannot be written. Wrong arguments are found before any work starts.
        MissingExtraError: If optimum is needed and not installed.
        GateError: If a cosine, a rank correlation, the size or the latency misses its limit. Nothing is written then.

    Examples:
        >>> report = export(model, "bundle", BundleSettings(precision="int8"))  # doctest: +SKIP
        >>> report.parity.min_cosine > 0.99  # doctest: +SKIP
        True
    """
    out, settings, timer = Path(out), settings or BundleSettings(), StepTimer(on_step)
    settings, provenance = settings.replace(name=settings.name or out.resolve().name), provenance or Provenance()
    check_output_path(out, force=force, kind=BUNDLE_FOLDER)
    settings.check_kind("encoder")
    settings.check_reduction(vocabulary=vocabulary, trim_to=trim_to, fit=fit)

    # Inspect.
    model = sound_model(model)
    unreduced = inspect_model(model)
    spec = in_role(unreduced, settings)
    _check_model(settings, spec, model, is_trimmed=vocabulary is not None or trim_to is not None)
    calibration, held_out = split_sentences(
        default_sentences() if sentences is None else sentences,
        cutting_tokenizer(spec),
        calibrates=settings.calibrates,
    )
    _check_ranked(settings, len(held_out))

    # Reduce: vocabulary, then dimensions.
    original = private_copy(model, settings.prompts)
    with timer.step("reduce"):
        reduced, reduction = _reduce(original, settings, vocabulary, trim_to, fit)
    if reduced is not original:
        spec = in_role(inspect_model(reduced), settings)
    check_token_rows(spec)  # trimming may have removed the tokens in question
    for each in (original, reduced):
        apply_role(each, spec, unreduced.max_seq_length)

    # Choose the writer, which traces and fuses the graph if its weights are not too large already.
    writer: NumpyWriter | OnnxWriter
    if settings.backend == "numpy":
        writer = NumpyWriter(read_matrices(reduced))
    else:
        graph = build_graph(spec)

        def traced() -> onnx.ModelProto:
            with timer.step("trace"):
                unfused = TRACERS[settings.tracer](graph, spec.max_seq_length)
            with timer.step("fuse"):
                return fuse(unfused, mask_tokens(spec))

        writer = OnnxWriter(graph, traced, spec, calibration, torch_weights=settings.torch_weights)

    # Trace, quantize, write and check, at the first precision that keeps all limits.
    # Trimming the vocabulary keeps the embedding space, a PCA head does not.
    has_head = "head" in reduction
    space = (None if has_head else provenance.space) or embedding_space(reduced if has_head else original)
    task = _EncoderTask(settings, space, reduced, None if reduced is original else original, reduction, held_out, timer)
    precision, measured = assemble(out, task, writer, spec, settings, provenance, force=force, timer=timer)
    return ExportReport(
        path=out,
        size_bytes=folder_size_bytes(out),
        parameters=writer.num_parameters,
        dimension=spec.dimension,
        space=space,
        precision=precision,
        parity=measured.parity,
        original_parity=measured.original_parity,
        latency_ms=measured.latency_ms,
        near_cosine=measured.near_cosine,
        reduction=reduction,
        seconds=timer.seconds,
    )


@dataclass(frozen=True)
class _EncoderTask:
    """Checks and describes the bundle of an encoder.

    Attributes:
        settings: The settings of the bundle.
        space: The name of the embedding space.
        model: The model that the bundle is made from.
        original: The model before it was reduced; None if it was not.
        reduction: A report per reduction.
        sentences: Sentences that the bundle was not calibrated on.
        timer: Times the steps.
    """

    settings: BundleSettings
    space: str
    model: SentenceTransformer
    original: SentenceTransformer | None
    reduction: dict[str, TrimReport | PcaHeadReport]
    sentences: list[str]
    timer: StepTimer

    def manifest_fields(self) -> dict[str, Any]:
        reduction = {name: asdict(report) for name, report in self.reduction.items()} or None
        return {"space": self.space, "reduction": reduction}

    def check(self, bundle: Bundle, precision: str) -> Measured[Parity]:
        settings, timer = self.settings, self.timer
        with timer.step("parity"):
            parity = compare(self.model, bundle, self.sentences)
        check_parity(parity, settings.limit("min_cosine", precision), precision)
        check_ranking(
            parity, settings.limit("min_rank", precision), settings.limit("min_overlap", precision), precision
        )
        original_parity = latency_ms = None
        if self.original is not None:
            with timer.step("parity"):
                original_parity = compare_with_original(self.original, bundle, self.sentences)
            check_original_parity(original_parity, settings.min_original_cosine, settings.min_original_rank)
        if settings.max_latency_ms is not None:
            with timer.step("latency"):
                latency_ms = measure_latency_ms(bundle, self.sentences)
            check_latency(latency_ms, settings.max_latency_ms)
        near_cosine = settings.near_cosine
        if near_cosine is None:
            with timer.step("near_cosine"):
                near_cosine = measure_near_cosine(bundle, self.sentences)
        return Measured(parity, original_parity, latency_ms, near_cosine)

    def write_golden(self, folder: Path, bundle: Bundle) -> None:
        write_golden(folder, Encoder(bundle))

    def card(self, manifest: dict[str, Any], *, size_bytes: int, command: str | None) -> str:
        return bundle_card(manifest, size_bytes=size_bytes, command=command)


def _check_model(settings: BundleSettings, spec: ModelSpec, model: SentenceTransformer, *, is_trimmed: bool) -> None:
    """Check, before any work starts, what depends on both the settings and the model."""
    if settings.dim is not None:
        check_dim(settings.dim, spec.dimension, spec.dimension)
    check_attention(spec)
    limits = {"min_original_cosine": "min_cosine", "min_original_rank": "min_rank"}
    given = [name for name in limits if getattr(settings, name) is not None]
    if given and not is_trimmed and settings.dim is None:
        raise InputError(
            f"{spelled(given[0])} is set, and the model was neither trimmed nor reduced; expected "
            f"{spelled(limits[given[0]])}, which compares with the model as it is"
        )
    if settings.min_original_cosine is not None and settings.dim not in {None, spec.dimension}:
        raise InputError(
            f"{spelled('min_original_cosine')} is set, and {settings.dim} of {spec.dimension} dimensions are kept, so "
            f"that there is no cosine between the embeddings; expected {spelled('min_original_rank')}"
        )
    if settings.torch_weights:
        check_torch_weights(spec.encoder)
    if settings.backend == "numpy":
        _check_numpy(settings, model)


def _check_ranked(settings: BundleSettings, sentences: int) -> None:
    """Check that there are enough sentences for the limits on the ranking that are asked for."""
    for option in ("min_rank", "min_overlap"):
        limit = getattr(settings, option)
        if limit is not None and sentences < MIN_TEXTS:
            raise InputError(
                f"{spelled(option)} is {limit}, and there are {sentences} sentences to rank; expected at least "
                f"{MIN_TEXTS}"
            )


def _check_numpy(settings: BundleSettings, model: SentenceTransformer) -> None:
    read_matrices(model)
    if settings.dim is not None and len(model) > 1:
        last = type(model[-1]).__name__
        raise InputError(
            f"{spelled('dim')} is {settings.dim}, and NumPy runs no PCA head after a {last} module; expected a model "
            f"without {last}, or the onnx backend"
        )


def _reduce(
    model: SentenceTransformer,
    settings: BundleSettings,
    vocabulary: Tokenizer | None,
    trim_to: Iterable[str] | None,
    fit: Iterable[str] | None,
) -> tuple[SentenceTransformer, dict[str, TrimReport | PcaHeadReport]]:
    """Return the reduced model, or the model itself if there is nothing to reduce, and a report per reduction."""
    reports: dict[str, TrimReport | PcaHeadReport] = {}
    if vocabulary is not None:
        model = with_vocabulary(model, vocabulary)
    if trim_to is not None:
        model, reports["vocabulary"] = trim_vocabulary(model, trim_to, size=settings.trim_size)
    if settings.dim is not None and fit is not None:
        model, reports["head"] = add_pca_head(model, list(fit), dim=settings.dim, whiten=settings.whiten)
    return model, reports
