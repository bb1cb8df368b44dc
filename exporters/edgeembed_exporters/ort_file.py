"""The same bytes each time from ONNX Runtime's converter.

A file in ORT format is a flatbuffer. Its model comes out the same each time; the table before it, of the types
that each operator's arguments have, is laid out in the order of a hash map with a random seed. So that table is
written anew, in the sorted order in which it is read, before the bytes of the model.
"""

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

# The strictest alignment in the format, that of tensors; a flatbuffer aligns by the distance from its end.
_ALIGNMENT = 16
_IDENTIFIER = b"ORTM"


def in_order(content: bytes) -> bytes:
    """Give a file in ORT format that says the same, and always in the same bytes.

    Args:
        content: The file, as onnxruntime wrote it.
    """
    import flatbuffers

    module = _module("InferenceSession")
    session = module.InferenceSession.GetRootAs(content)
    model = session.Model()._tab
    kept = content[model.Pos - model.Get(flatbuffers.number_types.SOffsetTFlags, model.Pos) :]
    builder = flatbuffers.Builder(len(content))
    builder.CreateByteVector(bytes(-len(kept) % _ALIGNMENT) + kept)
    builder.StartVector(1, 0, _ALIGNMENT)  # an empty one: it has the whole file aligned
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
    backwards = list(offsets)[::-1]
    builder.StartVector(4, len(backwards), 4)
    for offset in backwards:
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _each(table: Any, field: str) -> Iterator[Any]:
    return (getattr(table, field)(index) for index in range(getattr(table, f"{field}Length")()))


def _module(name: str) -> Any:
    """Give the reader and writer of one kind of table, which onnxruntime carries for its tools."""
    import_module("onnxruntime.tools.ort_format_model")  # makes the next name known
    return import_module(f"ort_flatbuffers_py.fbs.{name}")
