"""From a sentence-transformer to a bundle."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import BUNDLE_FOLDER, Parity
from edgeembed_runtime.storage.atomic import atomic_folder, check_output_path
from sentence_transformers import SentenceTransformer

from edgeembed_exporters.card import model_card
from edgeembed_exporters.gate import (
    GateError,
    OriginalParity,
    check_latency,
    check_original_parity,
    check_parity,
    check_size,
    compare,
    compare_with_original,
)
from edgeembed_exporters.golden import write_golden
from edgeembed_exporters.latency import measure_latency_ms
from edgeembed_exporters.manifest import describe, write_manifest
from edgeembed_exporters.matrices.files import NumpyFiles
from edgeembed_exporters.mobile import write_ort
from edgeembed_exporters.onnx_files import OnnxFiles
from edgeembed_exporters.options import (
    MIN_COSINE,
    Backend,
    Limits,
    Precision,
    Provenance,
    Role,
    Tracer,
    check_options,
)
from edgeembed_exporters.roles import in_role
from edgeembed_exporters.source import Source, take_apart
from edgeembed_exporters.tokenizer import bundle_tokenizer, write_tokenizer

_PARITY_TEXT = "parity_sentences.txt"
_CALIBRATION_SHARE = 8
_CALIBRATION_SENTENCES = 64


@dataclass(frozen=True)
class ExportReport:
    """What an export did.

    Attributes:
        bundle: The bundle's folder.
        size_bytes: Of all its files.
        parameters: How many numbers the model holds.
        dimension: The length of a vector.
        precision: "fp32", "fp16", "int8" or "int4".
        parity: How close the bundle is to the model, on sentences that it was not calibrated on.
        original_parity: How close it is to the model before trimming and reduction; None where there was none.
        latency_ms: The median time of one text; None where no limit asked for it.
        seconds: What each step took.
    """

    bundle: Path
    size_bytes: int
    parameters: int
    dimension: int
    precision: str
    parity: Parity
    original_parity: OriginalParity | None
    latency_ms: float | None
    seconds: dict[str, float]


def export(  # noqa: PLR0913  # what a bundle can be asked to be
    model: SentenceTransformer,
    out: str | os.PathLike[str],
    *,
    sentences: Sequence[str] | None = None,
    precision: Precision | Literal["auto"] = "fp32",
    min_cosine: float | None = None,
    original: SentenceTransformer | None = None,
    min_original_cosine: float | None = None,
    min_original_rank: float | None = None,
    max_size_mb: float | None = None,
    max_latency_ms: float | None = None,
    role: Role = "both",
    max_seq_length: int | None = None,
    prompts: Mapping[str, str] | None = None,
    exporter: Tracer = "torch",
    backend: Backend = "onnx",
    torch_weights: bool = False,
    ort: bool = False,
    name: str | None = None,
    provenance: Provenance | None = None,
    quality: dict[str, Any] | None = None,
    latency: dict[str, Any] | None = None,
    near_cosine: float | None = None,
    reduction: dict[str, Any] | None = None,
    force: bool = False,
) -> ExportReport:
    """Write a model as a bundle, unless the bundle would not be faithful to it.

    Args:
        model: A loaded model: a transformers encoder with any pooling, a matrix student, or a StaticEmbedding; then any
            Dense, LayerNorm and Normalize modules.
        out: The bundle's folder.
        sentences: Real text to compare the bundle with the model on; a few hundred are enough. None uses the text that
            ships with this package. At int8 and int4, one in eight (64 at most) calibrates instead, unless there are
            fewer than eight.
        precision: "fp32"; "fp16" for half the size; "int8" for a quarter of it and half the latency; "int4" for an
            eighth; or "auto" for the most faithful of them that keeps the limits.
        min_cosine: The least cosine to the model that any of the sentences may have; None is the precision's own,
            from 0.9999 for fp32 to 0.85 for int4 (`options.MIN_COSINE`).
        original: The model before its vocabulary was trimmed or its dimension reduced; the bundle is compared with it
            too. None if nothing was cut.
        min_original_cosine: The least cosine to `original` that any of the sentences may have; None sets no limit. It
            needs vectors of the original's dimension: after a reduction use the next one.
        min_original_rank: The least Spearman correlation between the cosines of all pairs of sentences by `original`
            and by the bundle; None sets no limit.
        max_size_mb: The most megabytes, of a million bytes, that the whole bundle may have, the torch weights and the
            ORT model included; None sets no limit.
        max_latency_ms: The most milliseconds that one text may take on this machine, the median of the sentences on
            one thread, tokenizing included; None sets no limit.
        role: What the bundle is for: "semantic", to rank by what a text is like; "relevance", to rank by a query; or
            "both". It decides how much of a text is read and what is put before it, as `roles.in_role` says.
        max_seq_length: How many tokens of a text are read, in place of the role's own number.
        prompts: Prompts by name, in place of the model's own: "query", "document" or any other.
        exporter: What traces the encoder: "torch", or "optimum" with its own configurations, where `edgeembed[optimum]`
            is installed. The graphs give the same.
        backend: What runs the bundle: "onnx"; or "numpy" alone, for matrix students and for a StaticEmbedding, each
            with at most a linear Dense and Normalize after it.
        torch_weights: Whether the encoder's weights are written as well, which sentence-transformers loads without
            its onnx backend.
        ort: Whether the model is written in ONNX Runtime's own format as well, beside the ONNX file.
        name: What the encoder is called; None is the folder's name.
        provenance: Where the model comes from.
        quality: Scores for the manifest and the card.
        latency: What a text takes and on which machine, for the manifest and the card.
        near_cosine: The cosine from which a text joins a center of interest, for the manifest; None leaves it to
            `SemanticRanker`. `InterestSettings.near_cosine` of the runtime says how to choose it.
        reduction: What was done to the model before, for the manifest and the card.
        force: Whether an existing bundle is replaced.

    Returns:
        What was written and measured.

    Raises:
        MissingExtraError: If optimum was asked for and is not installed.
        InputError: If the model has an unsupported part, an option no such value, there are no sentences,
            transformers could not load the torch weights, or `out` exists or cannot be written.
        GateError: If a cosine, a rank correlation, the size or the latency misses its limit. Then nothing is written.

    Example:
        >>> report = export(model, "bundle", precision="int8", sentences=sentences)  # doctest: +SKIP
        >>> report.parity.min_cosine > 0.99  # doctest: +SKIP
        True
    """
    out = Path(out)
    limits = Limits(min_cosine, max_size_mb, max_latency_ms, min_original_cosine, min_original_rank)
    check_options(
        precision=precision,
        role=role,
        exporter=exporter,
        backend=backend,
        torch_weights=torch_weights,
        ort=ort,
        limits=limits,
        name=name,
    )
    if near_cosine is not None and not 0 < near_cosine <= 1:
        raise InputError(f"near_cosine is {near_cosine}; expected a cosine above 0 and at most 1, such as 0.4")
    check_output_path(out, force=force, kind=BUNDLE_FOLDER)
    _check_original(model, original, limits)
    texts = _split_sentences(default_sentences() if sentences is None else sentences, precision)
    told = {"quality": quality, "latency": latency, "near_cosine": near_cosine, "reduction": reduction}
    choices = {"name": name or out.resolve().name, "role": role, **told}
    with ExitStack() as roles:
        for each in [model] if original is None else [model, original]:
            roles.enter_context(in_role(each, role, max_seq_length=max_seq_length, prompts=prompts or {}))
        job = _prepare(model, exporter, backend, torch_weights, texts, provenance or Provenance(), choices)
        job = replace(job, original=original, ort=ort)
        return _write_most_faithful(
            job, job.files.precisions if precision == "auto" else (precision,), limits, out, force
        )


def default_sentences() -> list[str]:
    """Return the text that ships with this package: 280 English sentences and texts of many kinds, a few foreign."""
    text = (resources.files("edgeembed_exporters") / _PARITY_TEXT).read_text(encoding="utf-8")
    return text.splitlines()


def _check_original(model: SentenceTransformer, original: SentenceTransformer | None, limits: Limits) -> None:
    asked = {"min_original_cosine": limits.min_original_cosine, "min_original_rank": limits.min_original_rank}
    given = [option for option, limit in asked.items() if limit is not None]
    if original is None and given:
        raise InputError(
            f"{given[0]} is set, and the model was neither trimmed nor reduced; expected min_cosine, which compares "
            "with the model as it is"
        )
    if original is not None and limits.min_original_cosine is not None:
        before, after = take_apart(original).dimension, take_apart(model).dimension
        if before != after:
            raise InputError(
                f"min_original_cosine is set, and {after} of the original's {before} dimensions are kept, which leaves "
                "no cosine between the two; expected min_original_rank"
            )


class _Clock:
    """Times steps; of one that is taken again, the sum."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = round(self.seconds.get(name, 0) + time.perf_counter() - start, 3)


@dataclass(frozen=True)
class _Job:
    """What bundles of all precisions are made from.

    Attributes:
        model: The model.
        source: Its parts.
        files: The files that its backend reads.
        held_out: Sentences to compare on.
        provenance: Where the model comes from.
        choices: What else the manifest says.
        clock: Times the steps.
        original: The model before trimming and reduction; None where there was none.
        ort: Whether ONNX Runtime's own format is written as well.
    """

    model: SentenceTransformer
    source: Source
    files: OnnxFiles | NumpyFiles
    held_out: list[str]
    provenance: Provenance
    choices: dict[str, Any]
    clock: _Clock
    original: SentenceTransformer | None = None
    ort: bool = False

    def least_bytes(self, precision: Precision) -> int:
        """Return fewer bytes than a bundle at a precision has, known before anything is quantized."""
        model = self.files.least_bytes(precision)
        tokenizer = len(bundle_tokenizer(self.source).to_str(pretty=False).encode())
        return (2 if self.ort else 1) * model + self.files.torch_bytes + tokenizer


def _split_sentences(sentences: Sequence[str], precision: str) -> tuple[list[str], list[str]]:
    """Give the sentences to calibrate on and those to compare on."""
    if isinstance(sentences, str) or not len(sentences):
        raise InputError("there are no sentences to compare the bundle with the model on; expected a few hundred")
    held_out = list(dict.fromkeys(sentences))
    if precision in {"fp32", "fp16"}:
        return [], held_out
    if len(held_out) < _CALIBRATION_SHARE:
        return held_out, held_out
    chosen = set(range(0, len(held_out), _CALIBRATION_SHARE)[:_CALIBRATION_SENTENCES])
    return [held_out[i] for i in sorted(chosen)], [s for i, s in enumerate(held_out) if i not in chosen]


def _prepare(
    model: SentenceTransformer,
    exporter: Tracer,
    backend: Backend,
    torch_weights: bool,
    texts: tuple[list[str], list[str]],
    provenance: Provenance,
    choices: dict[str, Any],
) -> _Job:
    source, clock = take_apart(model), _Clock()
    calibration, held_out = texts
    files: OnnxFiles | NumpyFiles = (
        NumpyFiles(model) if backend == "numpy" else OnnxFiles(source, exporter, torch_weights, calibration, clock.step)
    )
    return _Job(
        model=model,
        source=source,
        files=files,
        held_out=held_out,
        provenance=provenance,
        choices={**choices, "backend": backend},
        clock=clock,
    )


def _write_most_faithful(
    job: _Job, precisions: Sequence[Precision], limits: Limits, out: Path, force: bool
) -> ExportReport:
    """Write a bundle at the first of the precisions that keeps all limits."""
    refusals: dict[Precision, GateError] = {}
    for each in precisions:
        try:
            if limits.max_size_mb is not None:
                check_size(job.least_bytes(each), limits.max_size_mb, at_least=True)
            with atomic_folder(out, force=force, kind=BUNDLE_FOLDER) as folder:
                measured = _write_bundle(job, each, limits, folder)
        except GateError as error:
            refusals[each] = error
            continue
        dimension, seconds = job.source.dimension, job.clock.seconds
        return ExportReport(out, _size_bytes(out), job.files.parameters, dimension, each, *measured, seconds)
    raise _refusal(refusals)


def _write_bundle(
    job: _Job, precision: Precision, limits: Limits, folder: Path
) -> tuple[Parity, OriginalParity | None, float | None]:
    """Write a bundle, what is cheap to refuse first; return its parities and its latency."""
    job.files.write(precision, folder)
    description = _describe(job, precision)
    with job.clock.step("write"):
        write_tokenizer(job.source, folder)
        write_manifest(folder, description)
    check_size(_size_bytes(folder), limits.max_size_mb)
    if job.ort:
        with job.clock.step("ort"):
            write_ort(folder)
        check_size(_size_bytes(folder), limits.max_size_mb)
    with job.clock.step("parity"):
        parity = compare(job.model, folder, job.held_out)
    check_parity(parity, MIN_COSINE[precision] if limits.min_cosine is None else limits.min_cosine)
    original_parity = None
    if job.original is not None:
        with job.clock.step("parity"):
            original_parity = compare_with_original(job.original, folder, job.held_out)
        check_original_parity(original_parity, limits.min_original_cosine, limits.min_original_rank)
    with job.clock.step("latency"):
        latency_ms = None if limits.max_latency_ms is None else measure_latency_ms(folder, job.held_out)
    check_latency(latency_ms, limits.max_latency_ms)
    with job.clock.step("golden"):
        write_golden(folder)
    parities = {"parity": asdict(parity), "original_parity": asdict(original_parity) if original_parity else None}
    _write_card(folder, {**description, **parities}, job.provenance)
    check_size(_size_bytes(folder), limits.max_size_mb)
    return parity, original_parity, latency_ms


def _describe(job: _Job, precision: Precision) -> dict[str, Any]:
    """Give the manifest, its parity still unmeasured."""
    return describe(
        job.source,
        job.provenance,
        num_parameters=job.files.parameters,
        precision=precision,
        model_file=job.files.model_file(precision),
        **job.choices,
    )


def _write_card(folder: Path, description: dict[str, Any], provenance: Provenance) -> None:
    card = model_card(description, size_bytes=_size_bytes(folder), command=provenance.command)
    (folder / "README.md").write_text(card, encoding="utf-8")
    write_manifest(folder, description)


def _size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _refusal(refusals: dict[Precision, GateError]) -> GateError:
    if len(refusals) == 1:
        return next(iter(refusals.values()))
    found = "; ".join(f"at {precision} {str(error).partition(';')[0]}" for precision, error in refusals.items())
    return GateError(
        f"no precision keeps all limits: {found}; nothing was written: "
        "raise a limit, trim the vocabulary (--trim-to) or take fewer dimensions (--dim)"
    )
