"""Convert an ONNX file to ONNX Runtime's own format, which its small builds for phones read instead of ONNX.

The file is a flatbuffer. ONNX Runtime writes the model in it the same way each time, but orders the table before it, of
the types of each operator's arguments, by a hash map with a random seed. So that exports are reproducible, that table
is written again, sorted.
"""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from edgeembed_runtime.storage.atomic import atomic_file

OPERATORS = "required_operators.config"
"""The list of operators and types that a reduced build of ONNX Runtime needs, beside the model."""

# The strictest alignment in the format, that of tensors; a flatbuffer aligns by the distance from its end.
_ALIGNMENT = 16
_IDENTIFIER = b"ORTM"


def convert_to_ort(model: Path) -> tuple[Path, Path]:
    """Write a model in ONNX Runtime's format, and the operators and types that it needs, beside its ONNX file.

    `model.onnx` becomes `model.ort` and `required_operators.config`, the file for ONNX Runtime's
    `build.sh --include_ops_by_config`. The graph is not optimized, because ONNX Runtime would optimize it for this
    machine's processor; the exporter has simplified it already. So the embeddings are those of the ONNX file.

    Args:
        model: The ONNX file. Existing files of the two names are replaced.

    Returns:
        The two files.
    """
    ort, operators = model.with_suffix(".ort"), model.with_name(OPERATORS)
    with atomic_file(ort, force=True) as file:
        _convert(model, file)
    with atomic_file(operators, force=True) as file:
        file.write_text(_required_operators(ort), encoding="utf-8")
    return ort, operators


def _convert(source: Path, out: Path) -> None:
    # Imported here because edgeembed_runtime turns its telemetry off, and must have been imported before it.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = os.fspath(out)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    out.write_bytes(_reproducible(out.read_bytes()))


def _required_operators(model: Path) -> str:
    """Return the list without its comment, which contains the model's path on this machine."""
    from onnxruntime.tools.ort_format_model import create_config_from_models

    with tempfile.TemporaryDirectory() as scratch, _quiet():
        listed = Path(scratch) / OPERATORS
        create_config_from_models([model], listed, enable_type_reduction=True)
        lines = listed.read_text(encoding="utf-8").splitlines()
    return "".join(f"{line}\n" for line in lines if not line.startswith("#"))


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the tool's message that it wrote a file, and the warning that it leaves one open."""
    logger = logging.getLogger("ort_format_model.utils")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            yield
    finally:
        logger.setLevel(level)


def _reproducible(content: bytes) -> bytes:
    """Return an ORT file of the same content, always in the same bytes.

    Args:
        content: The file, as onnxruntime wrote it.
    """
    import flatbuffers

    module = _module("InferenceSession")
    session = module.InferenceSession.GetRootAs(content)
    model = session.Model()._tab
    model_bytes = content[model.Pos - model.Get(flatbuffers.number_types.SOffsetTFlags, model.Pos) :]
    builder = flatbuffers.Builder(len(content))
    builder.CreateByteVector(bytes(-len(model_bytes) % _ALIGNMENT) + model_bytes)
    builder.StartVector(1, 0, _ALIGNMENT)  # empty; it aligns the whole file
    builder.EndVector()
    version = builder.CreateString(session.OrtVersion())
    resolver = _write_resolver(builder, session.KernelTypeStrResolver())
    module.Start(builder)
    module.AddOrtVersion(builder, version)
    module.AddModel(builder, len(content) - model.Pos)
    module.AddKernelTypeStrResolver(builder, resolver)
    builder.Finish(module.End(builder), file_identifier=_IDENTIFIER)
    return bytes(builder.Output())


def _write_resolver(builder: Any, resolver: Any) -> int:
    module = _module("KernelTypeStrResolver")
    entries = [_write_operator(builder, operator) for operator in _each(resolver, "OpKernelTypeStrArgs")]
    vector = _write_vector(builder, entries)
    module.Start(builder)
    module.AddOpKernelTypeStrArgs(builder, vector)
    return int(module.End(builder))


def _write_operator(builder: Any, operator: Any) -> int:
    module = _module("OpIdKernelTypeStrArgsEntry")
    name = builder.CreateString(operator.OpId())
    types = [_write_type(builder, kind) for kind in _each(operator, "KernelTypeStrArgs")]
    vector = _write_vector(builder, types)
    module.Start(builder)
    module.AddOpId(builder, name)
    module.AddKernelTypeStrArgs(builder, vector)
    return int(module.End(builder))


def _write_type(builder: Any, kind: Any) -> int:
    module = _module("KernelTypeStrArgsEntry")
    name = builder.CreateString(kind.KernelTypeStr())
    arguments = [_write_argument(builder, argument) for argument in _each(kind, "Args")]
    vector = _write_vector(builder, arguments)
    module.Start(builder)
    module.AddKernelTypeStr(builder, name)
    module.AddArgs(builder, vector)
    return int(module.End(builder))


def _write_argument(builder: Any, argument: Any) -> int:
    module = _module("ArgTypeAndIndex")
    module.Start(builder)
    module.AddArgType(builder, argument.ArgType())
    module.AddIndex(builder, argument.Index())
    return int(module.End(builder))


def _write_vector(builder: Any, offsets: Iterable[int]) -> int:
    reversed_offsets = list(offsets)[::-1]
    builder.StartVector(4, len(reversed_offsets), 4)
    for offset in reversed_offsets:
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _each(table: Any, field: str) -> Iterator[Any]:
    return (getattr(table, field)(index) for index in range(getattr(table, f"{field}Length")()))


def _module(name: str) -> Any:
    """Return the reader and writer of one kind of table, which onnxruntime contains for its tools."""
    import_module("onnxruntime.tools.ort_format_model")  # it puts the next module on the path
    return import_module(f"ort_flatbuffers_py.fbs.{name}")
