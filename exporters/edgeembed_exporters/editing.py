"""An ONNX graph under the knife: who makes a tensor, who reads it, what is constant."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

CONTRIB = "com.microsoft"
"""The domain of onnxruntime's own operators, which its builds for phones and for the web have too."""


class Editor:
    """A graph's nodes and constants, and a way to change them.

    Args:
        model: The graph; it is changed in place.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self.graph = model.graph
        self._tensors = {tensor.name: tensor for tensor in self.graph.initializer}
        self._added: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._index()

    def maker(self, tensor: str) -> onnx.NodeProto | None:
        """Give the node that makes a tensor; None for inputs and constants."""
        return self._makers.get(tensor)

    def readers(self, tensor: str) -> list[onnx.NodeProto]:
        """Give the nodes that read a tensor."""
        return self._readers.get(tensor, [])

    def only_reader(self, tensor: str, kind: str) -> onnx.NodeProto | None:
        """Give the node that reads a tensor, if it is of a kind and the only one."""
        readers = self.readers(tensor)
        return readers[0] if len(readers) == 1 and readers[0].op_type == kind else None

    def is_constant(self, tensor: str) -> bool:
        """Tell whether a tensor is stored in the graph."""
        return tensor in self._tensors

    def constant(self, tensor: str) -> npt.NDArray[Any] | None:
        """Give a stored tensor's values; None if it is not stored."""
        return numpy_helper.to_array(self._tensors[tensor]) if tensor in self._tensors else None

    def dims(self, tensor: str) -> tuple[int, ...] | None:
        """Give a stored tensor's shape; None if it is not stored."""
        return tuple(self._tensors[tensor].dims) if tensor in self._tensors else None

    def scalar(self, tensor: str) -> float | None:
        """Give the value of a stored tensor of one element; None for any other."""
        dims = self.dims(tensor)
        values = self.constant(tensor) if dims is not None and np.prod(dims) == 1 else None
        return None if values is None else float(values.reshape(()))

    def add_constant(self, name: str, values: npt.NDArray[Any]) -> str:
        """Store a tensor, unless one of this name is stored, or an equal one was added; gives what it is stored as."""
        values = np.array(values, order="C")  # of ascontiguousarray, a scalar would come back with a dimension
        name = self._added.setdefault((values.dtype.str, values.shape, hashlib.sha256(values.tobytes()).digest()), name)
        if name not in self._tensors:
            self.graph.initializer.append(numpy_helper.from_array(values, name))
            self._tensors[name] = self.graph.initializer[-1]
        return name

    def replace(self, replacements: dict[str, list[onnx.NodeProto]]) -> None:
        """Put nodes in place of others, then drop what nothing needs any more.

        Args:
            replacements: By the first output of a node: what stands in its place.
        """
        nodes: list[onnx.NodeProto] = []
        for node in self.graph.node:
            nodes += replacements.get(node.output[0], [node])
        self._keep(_needed(nodes, {output.name for output in self.graph.output}))
        if any(node.domain == CONTRIB for node in self.graph.node):
            self._know_contrib()

    def _keep(self, nodes: list[onnx.NodeProto]) -> None:
        del self.graph.node[:]
        self.graph.node.extend(nodes)
        used = {name for node in nodes for name in _read_by(node)}
        kept = [tensor for tensor in self.graph.initializer if tensor.name in used]
        del self.graph.initializer[:]
        self.graph.initializer.extend(kept)
        self._tensors = {tensor.name: tensor for tensor in self.graph.initializer}
        self._index()

    def _index(self) -> None:
        self._makers = {output: node for node in self.graph.node for output in node.output if output}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        for node in self.graph.node:
            for name in dict.fromkeys(_read_by(node)):
                self._readers.setdefault(name, []).append(node)

    def _know_contrib(self) -> None:
        if CONTRIB not in {opset.domain for opset in self._model.opset_import}:
            self._model.opset_import.append(helper.make_opsetid(CONTRIB, 1))


def contrib_node(kind: str, inputs: list[str], output: str, **choices: float) -> onnx.NodeProto:
    """Give a node of one of onnxruntime's own operators."""
    node: onnx.NodeProto = helper.make_node(kind, inputs, [output], domain=CONTRIB)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in choices.items())
    return node


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Give a node's attributes by name."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def looks_up_rows(node: onnx.NodeProto) -> bool:
    """Tell whether a node gives rows of a table by their numbers."""
    return bool(node.op_type == "Gather" and attributes(node).get("axis", 0) == 0)


def other_input(node: onnx.NodeProto, tensor: str) -> str:
    """Give what a node of two inputs reads beside a tensor."""
    return str(node.input[1] if node.input[0] == tensor else node.input[0])


def _read_by(node: onnx.NodeProto) -> Iterator[str]:
    """Give the tensors that a node reads, in its branches too."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _read_by(inner)


def _needed(nodes: list[onnx.NodeProto], outputs: Iterable[str]) -> list[onnx.NodeProto]:
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(_read_by(node))
            kept.append(node)
    return kept[::-1]
