"""Check an ONNX file before ONNX Runtime loads it.

ONNX Runtime would run a `Loop` that never ends and, in older versions, read weights from any file of the machine. The
exporters write neither loops nor external weights, so a model with one of them is rejected. The file is protobuf
(onnx.proto of ONNX 1.19). Only the fields that need a check are read; weights are skipped.
"""

import math
from collections.abc import Iterator

from edgeembed_runtime.errors import BundleError

# The operator domains of ONNX, under both of its names, and of ONNX Runtime.
_DOMAINS = (b"", b"ai.onnx", b"com.microsoft")

# Field numbers of onnx.proto.
_MODEL_GRAPH, _MODEL_TRAINING, _MODEL_FUNCTIONS = 7, 20, 25
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_SPARSE_INITIALIZER = 1, 5, 15
_NODE_OPERATOR, _NODE_ATTRIBUTE, _NODE_DOMAIN = 4, 5, 7
_ATTRIBUTE_TENSOR, _ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS = 5, 10, 6, 11
_ATTRIBUTE_SPARSE, _ATTRIBUTE_SPARSES = 22, 23
_TENSOR_SHAPE, _TENSOR_EXTERNAL, _TENSOR_LOCATION = 1, 13, 14

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED_SIZE = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_MAX_TAG = 2**32
_MAX_VARINT_BYTES = 10
# A graph of a hundred layers has about 100,000 fields; this many take one or two seconds.
_MAX_FIELDS = 1_000_000
# A bundle has at most 2 GiB, and a weight at least four bits.
_MAX_ELEMENTS = 2**32
_MAX_AXES = 16

_Value = int | memoryview


def check_graph_file(content: bytes, where: str) -> None:
    """Check that an ONNX file is one flat graph of known operators with its weights inside.

    Args:
        content: The file.
        where: Its path, for messages.

    Raises:
        BundleError: If it has control flow (`Loop`, `Scan`, `If` or another operator with a subgraph), functions,
            operators of an unknown domain, sparse weights, weights in another file, or weights too large for
            a file; or is not an ONNX file.
    """
    try:
        _Walk().check_model(memoryview(content))
    except ValueError as error:
        raise BundleError(f"{where} is not a model: {error}; export the bundle again") from error


class _Walk:
    """A pass over a file that counts the fields it has read."""

    def __init__(self) -> None:
        self._fields = 0

    def check_model(self, model: memoryview) -> None:
        """Check a ModelProto."""
        for field, value in self._read(model):
            if field in (_MODEL_FUNCTIONS, _MODEL_TRAINING):
                raise ValueError("it has functions or training steps, expected one graph of operators")
            if field == _MODEL_GRAPH:
                self._check_graph(_message(value))

    def _check_graph(self, graph: memoryview) -> None:
        for field, value in self._read(graph):
            if field == _GRAPH_NODE:
                self._check_node(_message(value))
            elif field == _GRAPH_INITIALIZER:
                self._check_tensor(_message(value))
            elif field == _GRAPH_SPARSE_INITIALIZER:
                raise ValueError("it has sparse weights, expected dense ones")

    def _check_node(self, node: memoryview) -> None:
        fields = list(self._read(node))
        operator = next((bytes(_message(value)) for field, value in fields if field == _NODE_OPERATOR), b"")
        name = repr(operator.decode("utf-8", "replace")[:80])
        for field, value in fields:
            if field == _NODE_DOMAIN and bytes(_message(value)) not in _DOMAINS:
                domain = bytes(_message(value)).decode("utf-8", "replace")[:80]
                raise ValueError(
                    f"operator {name} is of the domain {domain!r}, expected one of ONNX or of ONNX Runtime"
                )
            if field == _NODE_ATTRIBUTE:
                self._check_attribute(_message(value), name)

    def _check_attribute(self, attribute: memoryview, operator: str) -> None:
        for field, value in self._read(attribute):
            if field in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS):
                raise ValueError(f"operator {operator} has a subgraph, expected no control flow")
            if field in (_ATTRIBUTE_SPARSE, _ATTRIBUTE_SPARSES):
                raise ValueError(f"operator {operator} has sparse weights, expected dense ones")
            if field in (_ATTRIBUTE_TENSOR, _ATTRIBUTE_TENSORS):
                self._check_tensor(_message(value))

    def _check_tensor(self, tensor: memoryview) -> None:
        shape: list[int] = []
        for field, value in self._read(tensor):
            if field == _TENSOR_SHAPE:
                shape += _integers(value)
            if field == _TENSOR_EXTERNAL or (field == _TENSOR_LOCATION and value != 0):
                raise ValueError(
                    "External data (weights in another file) is not supported, expected all weights in one file"
                )
        # onnxruntime would print a message about such a shape before it raises an error.
        if len(shape) > _MAX_AXES or math.prod(shape) > _MAX_ELEMENTS:
            raise ValueError(f"it has weights of shape {shape[:_MAX_AXES]}, more than a file can hold")

    def _read(self, message: memoryview) -> Iterator[tuple[int, _Value]]:
        """Yield the number and the value of each field of a message."""
        position, end = 0, len(message)
        while position < end:
            self._fields += 1
            if self._fields > _MAX_FIELDS:
                raise ValueError(f"it has more than {_MAX_FIELDS} fields")
            tag, position = _varint(message, position)
            if tag >= _MAX_TAG or tag < 1 << 3:
                raise ValueError("it is not protobuf")
            field, kind = tag >> 3, tag & 7
            if kind == _VARINT:
                value, position = _varint(message, position)
                yield field, value
                continue
            if kind == _BYTES:
                size, position = _varint(message, position)
            elif kind in _FIXED_SIZE:
                size = _FIXED_SIZE[kind]
            else:
                raise ValueError("it is not protobuf")
            if size > end - position:
                raise ValueError("it is truncated")
            yield field, message[position : position + size]
            position += size


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """Return the integer at a position, and the position after it."""
    integer = 0
    for index, byte in enumerate(message[position : position + _MAX_VARINT_BYTES]):
        integer |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return integer, position + index + 1
    raise ValueError("it is truncated")


def _integers(value: _Value) -> list[int]:
    """Return the integers of a repeated field, which may be packed; stop after one more than a shape may have."""
    if isinstance(value, int):
        return [value]
    integers: list[int] = []
    position = 0
    while position < len(value) and len(integers) <= _MAX_AXES:
        integer, position = _varint(value, position)
        integers.append(integer)
    return integers


def _message(value: _Value) -> memoryview:
    """Return a field's bytes; raise ValueError for a field of another wire type, which no exporter writes."""
    if isinstance(value, memoryview):
        return value
    raise ValueError("it is not protobuf")
