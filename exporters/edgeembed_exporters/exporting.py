"""From a sentence-transformer to a bundle."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx
from edgeembed_runtime import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import MANIFEST, Parity
from edgeembed_runtime.storage.writing import new_folder, refuse_existing
from sentence_transformers import SentenceTransformer

from edgeembed_exporters.card import model_card
from edgeembed_exporters.gate import check_parity, check_size, measure_parity
from edgeembed_exporters.golden import write_golden
from edgeembed_exporters.graph import SentenceGraph, build_graph, count_parameters, trace
from edgeembed_exporters.layout import write_configurations
from edgeembed_exporters.manifest import bundle_files, describe, write_manifest
from edgeembed_exporters.options import MIN_COSINE, Precision, Provenance, Role, check_options
from edgeembed_exporters.quantise import quantise_products
from edgeembed_exporters.source import Source, take_apart
from edgeembed_exporters.tables import quantise_tables
from edgeembed_exporters.tokenizer import bundle_tokenizer, write_tokenizer

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
        precision: "fp32" or "int8".
        parity: How close the bundle is to the model, on sentences that it was not calibrated on.
        seconds: What each step took.
    """

    bundle: Path
    size_bytes: int
    parameters: int
    dimension: int
    precision: str
    parity: Parity
    seconds: dict[str, float]


def export(  # noqa: PLR0913  # what a bundle can be asked to be
    model: SentenceTransformer,
    out: str | os.PathLike[str],
    *,
    sentences: Sequence[str],
    precision: Precision = "fp32",
    min_cosine: float | None = None,
    max_size_mb: float | None = None,
    role: Role = "semantic",
    name: str | None = None,
    provenance: Provenance | None = None,
    quality: dict[str, Any] | None = None,
    force: bool = False,
) -> ExportReport:
    """Write a model as a bundle, unless the bundle would not be faithful to it.

    Args:
        model: A loaded model: a transformers encoder, mean or cls pooling, any Dense and Normalize modules.
        out: The bundle's folder.
        sentences: Real text to compare the bundle with the model on; a few hundred tell enough. At int8, one
            in eight (64 at most) calibrates the activations instead, unless there are fewer than eight.
        precision: "fp32", or "int8" for a quarter of the size and half the latency.
        min_cosine: The least cosine to the model that any of the sentences may have; None is 0.9999 for
            fp32, which differs by rounding alone, and 0.99 for int8, which a sound quantization meets.
        max_size_mb: The most megabytes, of a million bytes, that the bundle may have; None sets no limit.
        role: What the bundle is for: "semantic" similarity or "relevance" to a query.
        name: What the encoder is called; None is the folder's name.
        provenance: Where the model comes from.
        quality: Scores for the manifest and the card.
        force: Whether an existing bundle is replaced.

    Returns:
        What was written and measured.

    Raises:
        InputError: If the model has an unsupported part, an option no such value, there are no sentences, or
            `out` exists or cannot be written.
        GateError: If a sentence's cosine or the size misses its limit. Then nothing is written.

    Example:
        >>> report = export(model, "bundle", precision="int8", sentences=sentences)  # doctest: +SKIP
        >>> report.parity.worst_cosine > 0.99  # doctest: +SKIP
        True
    """
    out = Path(out)
    check_options(precision=precision, role=role, min_cosine=min_cosine, max_size_mb=max_size_mb, name=name)
    refuse_existing(out, force=force, marker=MANIFEST)
    calibration, held_out = _split_sentences(sentences, precision)
    source = take_apart(model)
    provenance = provenance or Provenance()
    clock = _Clock()
    made = _make_graph(source, precision, calibration, clock)
    choices = {"name": name or out.resolve().name, "role": role, "precision": precision, "quality": quality}
    with new_folder(out, force=force, marker=MANIFEST) as folder:
        with clock.step("write"):
            description = _write_files(source, made, provenance, choices, folder)
        with clock.step("parity"):
            parity = _compare(model, folder, held_out)
        check_parity(parity, MIN_COSINE[precision] if min_cosine is None else min_cosine)
        with clock.step("golden"):
            write_golden(folder)
        _write_card(folder, {**description, "parity": asdict(parity)}, provenance)
        size_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        check_size(size_bytes, max_size_mb)
    return ExportReport(out, size_bytes, made.parameters, source.dimension, precision, parity, clock.seconds)


def _split_sentences(sentences: Sequence[str], precision: Precision) -> tuple[list[str], list[str]]:
    """Give the sentences to calibrate on and those to compare on."""
    if isinstance(sentences, str) or not len(sentences):
        raise InputError("there are no sentences to compare the bundle with the model on; expected a few hundred")
    held_out = list(sentences)
    if precision == "fp32":
        return [], held_out
    if len(held_out) < _CALIBRATION_SHARE:
        return held_out, held_out
    chosen = set(range(0, len(held_out), _CALIBRATION_SHARE)[:_CALIBRATION_SENTENCES])
    return [held_out[i] for i in sorted(chosen)], [s for i, s in enumerate(held_out) if i not in chosen]


def _make_graph(source: Source, precision: Precision, calibration: list[str], clock: _Clock) -> _Made:

    graph = build_graph(source)
    parameters = count_parameters(graph)
    if precision == "int8":
        quantise_tables(graph.encoder)
    with clock.step("trace"):
        model = trace(graph, source.max_seq_length)
    if precision == "int8":
        with clock.step("quantise"):
            tokenizer = bundle_tokenizer(source)
            model = quantise_products(model, (tokenizer.encode(text).ids for text in calibration))
    return _Made(graph, model, parameters)


def _write_files(
    source: Source, made: _Made, provenance: Provenance, choices: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """Write everything but the card; the manifest's parity is still unmeasured."""
    description = describe(source, provenance, parameters=made.parameters, **choices)
    file = folder / description["model_file"]
    file.parent.mkdir()
    onnx.checker.check_model(made.model)
    onnx.save(made.model, file)
    write_tokenizer(source, folder)
    write_configurations(source, made.graph, folder, model_file=description["model_file"])
    write_manifest(folder, description)
    return description


def _compare(model: SentenceTransformer, folder: Path, sentences: list[str]) -> Parity:
    """Measure the bundle as it will be run, not the graph that it was made from."""
    expected = model.encode(sentences, convert_to_numpy=True, show_progress_bar=False)
    given = Encoder.load(folder).encode(sentences, on_truncate="ignore", show_progress_bar=False)
    return measure_parity(sentences, expected, given)


def _write_card(folder: Path, description: dict[str, Any], provenance: Provenance) -> None:

    size_bytes = sum((folder / name).stat().st_size for name in bundle_files(folder))
    card = model_card(description, size_bytes=size_bytes, command=provenance.command)
    (folder / "README.md").write_text(card, encoding="utf-8")
    write_manifest(folder, description)


@dataclass(frozen=True)
class _Made:
    """A graph in torch and in ONNX, and how many numbers it holds before any is quantized."""

    graph: SentenceGraph
    model: onnx.ModelProto
    parameters: int


class _Clock:
    """Times steps."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - start, 3)
