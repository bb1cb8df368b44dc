"""Assemble a bundle: quantize, write, check and describe a model at the first precision that keeps all limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from edgeembed_runtime import Bundle
from edgeembed_runtime.manifest import BUNDLE_FOLDER
from edgeembed_runtime.parity import ClassifierParity, Parity
from edgeembed_runtime.storage.atomic import atomic_folder

from edgeembed_exporters.bundle.hub_files import bundle_tokenizer, compact_json, write_tokenizer
from edgeembed_exporters.bundle.manifest import manifest_fields, manifest_text, unwritten_bundle, write_manifest
from edgeembed_exporters.bundle_settings import AUTO, BundleSettings
from edgeembed_exporters.gate import GateError, OriginalParity, check_size
from edgeembed_exporters.model_spec import ModelSpec
from edgeembed_exporters.onnx.ort_format import convert_to_ort
from edgeembed_exporters.precision import precision_names
from edgeembed_exporters.provenance import Provenance
from edgeembed_exporters.settings import spelled
from edgeembed_exporters.steps import StepTimer

P = TypeVar("P", Parity, ClassifierParity)


@dataclass(frozen=True)
class Measured(Generic[P]):
    """What was measured on a bundle that keeps all limits.

    Attributes:
        parity: The agreement with the model.
        original_parity: The agreement with the model before it was reduced; None if it was not reduced.
        latency_ms: The median milliseconds per text; None if there is no limit on it.
        near_cosine: The threshold of the runtime's interests; None for a classifier, or if it was not measured.
    """

    parity: P
    original_parity: OriginalParity | None
    latency_ms: float | None
    near_cosine: float | None = None


class ModelWriter(Protocol):
    """Writes the model file of a bundle, and the configuration by which other libraries load it."""

    num_parameters: int

    @property
    def extra_size_bytes(self) -> int:
        """The size of files that are the same at every precision."""

    def model_file(self, precision: str) -> str:
        """Return the path of the model in a bundle."""

    def min_size_bytes(self, precision: str) -> int:
        """Return a lower bound of the model's size, known before `prepare`."""

    def prepare(self) -> None:
        """Do, once, the work that is the same at every precision."""

    def quantize(self, precision: str) -> bytes:
        """Return the content of the model file at a precision."""

    def write(self, content: bytes, precision: str, folder: Path) -> None:
        """Write the model and its configuration files."""


class BundleTask(Protocol[P]):
    """The steps that differ between the bundles of encoders and of classifiers."""

    def manifest_fields(self) -> Mapping[str, Any]:
        """Return the fields of edgeembed.json that depend on the task."""

    def check(self, bundle: Bundle, precision: str) -> Measured[P]:
        """Measure parity and latency, and raise GateError at the first limit that is missed."""

    def write_golden(self, folder: Path, bundle: Bundle) -> None:
        """Write golden.json."""

    def card(self, manifest: dict[str, Any], *, size_bytes: int, command: str | None) -> str:
        """Return the model card."""


def assemble(
    out: Path,
    task: BundleTask[P],
    writer: ModelWriter,
    spec: ModelSpec,
    settings: BundleSettings,
    provenance: Provenance,
    *,
    force: bool,
    timer: StepTimer,
) -> tuple[str, Measured[P]]:
    """Write a bundle at the first precision that keeps all limits.

    Args:
        out: The bundle's folder.
        task: Checks and describes the bundle.
        writer: Writes the model file.
        spec: The parts of the model.
        settings: The settings of the bundle, with a name.
        provenance: The model's origin.
        force: Whether to replace an existing bundle.
        timer: Times the steps.

    Returns:
        The precision, and what was measured.

    Raises:
        GateError: If no precision keeps all limits. Nothing is written then.
    """
    failures: dict[str, GateError] = {}
    is_auto = settings.precision == AUTO
    for precision in precision_names(settings.backend) if is_auto else (settings.precision,):
        try:
            check_size(
                _min_size_bytes(writer, spec, precision, ort=settings.ort), settings.max_size_mb, is_estimate=True
            )
            writer.prepare()
            with atomic_folder(out, force=force, kind=BUNDLE_FOLDER) as folder:
                measured = _write_bundle(folder, precision, task, writer, spec, settings, provenance, timer)
        except GateError as error:
            failures[precision] = error
            continue
        return precision, measured
    raise _no_precision_left(failures)


def folder_size_bytes(folder: Path) -> int:
    """Return the size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _write_bundle(
    folder: Path,
    precision: str,
    task: BundleTask[P],
    writer: ModelWriter,
    spec: ModelSpec,
    settings: BundleSettings,
    provenance: Provenance,
    timer: StepTimer,
) -> Measured[P]:
    """Quantize a model, write its bundle into a folder, and check it; limits that are cheap to check come first."""
    with timer.step("quantize"):
        content = writer.quantize(precision)
    with timer.step("write"):
        writer.write(content, precision, folder)
        write_tokenizer(spec, folder)
    model_file = writer.model_file(precision)
    if settings.ort:
        with timer.step("ort"):
            convert_to_ort(folder / model_file)
    check_size(folder_size_bytes(folder), settings.max_size_mb)

    manifest = {
        **manifest_fields(
            spec, settings, provenance, precision=precision, model_file=model_file, num_parameters=writer.num_parameters
        ),
        **task.manifest_fields(),
    }
    bundle = unwritten_bundle(folder, manifest)
    measured = task.check(bundle, precision)

    with timer.step("golden"):
        task.write_golden(folder, bundle)
    manifest["parity"] = asdict(measured.parity)
    manifest["near_cosine"] = measured.near_cosine
    manifest["original_parity"] = asdict(measured.original_parity) if measured.original_parity else None
    size_bytes = folder_size_bytes(folder) + len(manifest_text(folder, manifest).encode())
    card = task.card(manifest, size_bytes=size_bytes, command=provenance.command)
    (folder / "README.md").write_text(card, encoding="utf-8")
    write_manifest(folder, manifest)
    check_size(folder_size_bytes(folder), settings.max_size_mb)
    return measured


def _min_size_bytes(writer: ModelWriter, spec: ModelSpec, precision: str, *, ort: bool) -> int:
    """Return a lower bound of a bundle's size, known before anything is traced or quantized."""
    tokenizer = len(compact_json(bundle_tokenizer(spec)).encode())
    return (2 if ort else 1) * writer.min_size_bytes(precision) + writer.extra_size_bytes + tokenizer


def _no_precision_left(failures: dict[str, GateError]) -> GateError:
    """Return the error of an export that missed a limit at every precision."""
    if len(failures) == 1:
        return next(iter(failures.values()))
    found = "; ".join(f"at {precision} {str(error).partition(';')[0]}" for precision, error in failures.items())
    return GateError(
        f"no precision keeps all limits: {found}; nothing was written: "
        f"raise a limit, trim the vocabulary ({spelled('trim_to')}) or reduce the dimension ({spelled('dim')})"
    )
