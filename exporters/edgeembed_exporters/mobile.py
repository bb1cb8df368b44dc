"""A bundle's model in ONNX Runtime's own format, which the small builds for phones read instead of ONNX."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_file

from edgeembed_exporters.manifest import relist
from edgeembed_exporters.ort_file import in_order

OPERATORS = "required_operators.config"
"""The list that a build of ONNX Runtime is reduced to, beside the model."""


def write_ort(bundle: str | os.PathLike[str]) -> Path:
    """Write a bundle's model in ONNX Runtime's format, and the operators and types that it needs, beside it.

    Both are listed in edgeembed.json; `onnx/model.onnx` becomes `onnx/model.ort` and
    `onnx/required_operators.config`, the file for ONNX Runtime's `build.sh --include_ops_by_config`.

    The graph is not optimised on the way: what fits this machine's processor would be written down for all
    others, and the exporter has simplified it. So vectors are those of the ONNX file.

    Args:
        bundle: The bundle's folder. Files of these names in there are replaced.

    Returns:
        The model's path.

    Raises:
        InputError: If the folder is no bundle, its backend is not onnx, or it cannot be written.
        VerificationError: If a file is not the one that was exported.
    """
    folder = Path(bundle)
    opened = Bundle.open(folder, verify=True)
    if opened.backend != "onnx":
        raise InputError(f"the backend of {folder} is {opened.backend}; expected onnx: export the model anew")
    source = folder / opened.model_file
    model, operators = source.with_suffix(".ort"), source.with_name(OPERATORS)
    with atomic_file(model, force=True) as file:
        _convert(source, file)
    with atomic_file(operators, force=True) as file:
        file.write_text(_required_operators(model), encoding="utf-8")
    for path in (model, operators):
        relist(folder, path.relative_to(folder).as_posix())
    return model


def _convert(source: Path, out: Path) -> None:
    # Imported here because edgeembed_runtime turns its telemetry off, and must have been imported before it.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = os.fspath(out)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    out.write_bytes(in_order(out.read_bytes()))


def _required_operators(model: Path) -> str:
    """Give the list without its heading, which is the model's path on this machine."""
    from onnxruntime.tools.ort_format_model import create_config_from_models

    with tempfile.TemporaryDirectory() as scratch, _quiet():
        listed = Path(scratch) / OPERATORS
        create_config_from_models([model], listed, enable_type_reduction=True)
        lines = listed.read_text(encoding="utf-8").splitlines()
    return "".join(f"{line}\n" for line in lines if not line.startswith("#"))


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the tool's word that it made a file, and Python's that the tool leaves one open."""
    logger = logging.getLogger("ort_format_model.utils")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            yield
    finally:
        logger.setLevel(level)
