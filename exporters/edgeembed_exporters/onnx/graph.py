"""Index of an ONNX graph for rewriting: who produces a tensor, who consumes it, which tensors are initializers.

Why not onnx-ir and onnxscript.rewriter: with onnxscript 0.7.2, GELU, L2 normalization and bias folding were written as
rewrite rules too, in about 115 lines instead of 160, and compared on ten architectures and all-MiniLM-L6-v2. The first
two gave the same graphs node for node, bias folding the same nodes in another order. QAttention could be a fourth rule.
The rest of `fusion` and `quantization`, 1,600 lines, cannot be expressed as patterns, which name a fixed set of nodes:

- attention scores are scaled, transposed and biased by chains of any length and order, and whether a bias is a padding
  mask is found by running the graph;
- a `LinearGroup` is any number of MatMuls that consume the same activation;
- position ids are recognized by the values of an array.

This code walks from node to node, for which `onnx_ir.Value.producer()` takes as many lines as `Graph.producer()`. Rules
for the others would add a second representation of the graph, with conversions between both, and take longer: about
100 ms instead of 5 ms for the GELU on models of two layers.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

CONTRIB_DOMAIN = "com.microsoft"
"""Domain of ONNX Runtime's own operators. Its builds for phones and for the web have them too."""


class Graph:
    """A graph whose nodes can be looked up by their tensors and replaced.

    Args:
        model: The model to index; `add_initializer` and `replace_nodes` change it in place.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._proto = model.graph
        self._initializers = {tensor.name: tensor for tensor in self._proto.initializer}
        self._added: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._index_nodes()

    @property
    def nodes(self) -> Sequence[onnx.NodeProto]:
        """All nodes in topological order."""
        nodes: Sequence[onnx.NodeProto] = self._proto.node
        return nodes

    @property
    def initializer_names(self) -> list[str]:
        """The names of all initializers."""
        return list(self._initializers)

    def producer(self, tensor: str) -> onnx.NodeProto | None:
        """Return the node that outputs a tensor, None for graph inputs and initializers."""
        return self._producers.get(tensor)

    def consumers(self, tensor: str) -> list[onnx.NodeProto]:
        """Return the nodes that read a tensor, each once."""
        return self._consumers.get(tensor, [])

    def only_consumer(self, tensor: str, op_type: str) -> onnx.NodeProto | None:
        """Return the node that reads a tensor if it is the only one and has this operator type, else None."""
        consumers = self.consumers(tensor)
        return consumers[0] if len(consumers) == 1 and consumers[0].op_type == op_type else None

    def has_one_consumer(self, node: onnx.NodeProto) -> bool:
        """Return whether a node has one output, which one node reads and which is no output of the graph."""
        output = node.output[0]
        return len(node.output) == 1 and not self.is_output(output) and len(self.consumers(output)) == 1

    def is_output(self, tensor: str) -> bool:
        """Return whether a tensor is an output of the graph."""
        return any(output.name == tensor for output in self._proto.output)

    def is_initializer(self, tensor: str) -> bool:
        """Return whether a tensor is an initializer."""
        return tensor in self._initializers

    def initializer(self, tensor: str) -> npt.NDArray[Any] | None:
        """Return the values of an initializer, None for other tensors."""
        return numpy_helper.to_array(self._initializers[tensor]) if tensor in self._initializers else None

    def shape(self, tensor: str) -> tuple[int, ...] | None:
        """Return the shape of an initializer, None for other tensors."""
        return tuple(self._initializers[tensor].dims) if tensor in self._initializers else None

    def scalar(self, tensor: str) -> float | None:
        """Return the value of an initializer with one element, None for other tensors."""
        shape = self.shape(tensor)
        values = self.initializer(tensor) if shape is not None and np.prod(shape) == 1 else None
        return None if values is None else float(values.reshape(()))

    def add_initializer(self, name: str, values: npt.NDArray[Any]) -> str:
        """Store an initializer, unless equal values were added before.

        Args:
            name: Preferred name; other values of this name make it a longer one.
            values: Any array.

        Returns:
            The name under which the values are stored.
        """
        values = np.array(values, order="C")  # np.ascontiguousarray would turn a scalar into a vector
        content = values.dtype.str, values.shape, hashlib.sha256(values.tobytes()).digest()
        if content in self._added:
            return self._added[content]
        while name in self._initializers and not self._holds(name, values):
            name += "_"
        self._added[content] = name
        if name not in self._initializers:
            self._proto.initializer.append(numpy_helper.from_array(values, name))
            self._initializers[name] = self._proto.initializer[-1]
        return name

    def replace_nodes(self, replacements: dict[str, list[onnx.NodeProto]]) -> None:
        """Replace nodes in place, then remove nodes and initializers that no output depends on.

        Args:
            replacements: Maps the first output of a node to the nodes that take its place.
        """
        nodes: list[onnx.NodeProto] = []
        for node in self._proto.node:
            nodes += replacements.get(node.output[0], [node])
        nodes = _reachable(nodes, {output.name for output in self._proto.output})
        del self._proto.node[:]
        self._proto.node.extend(nodes)
        self._remove_unused_initializers()
        self._index_nodes()
        self._declare_contrib_domain()

    def _holds(self, name: str, values: npt.NDArray[Any]) -> bool:
        stored = numpy_helper.to_array(self._initializers[name])
        return (stored.dtype, stored.shape) == (values.dtype, values.shape) and stored.tobytes() == values.tobytes()

    def _remove_unused_initializers(self) -> None:
        used = {name for node in self._proto.node for name in _inputs(node)}
        for position in reversed(range(len(self._proto.initializer))):
            if self._proto.initializer[position].name not in used:
                del self._proto.initializer[position]
        self._initializers = {tensor.name: tensor for tensor in self._proto.initializer}

    def _index_nodes(self) -> None:
        self._producers = {output: node for node in self._proto.node for output in node.output if output}
        self._consumers: dict[str, list[onnx.NodeProto]] = {}
        for node in self._proto.node:
            for name in dict.fromkeys(_inputs(node)):
                self._consumers.setdefault(name, []).append(node)

    def _declare_contrib_domain(self) -> None:
        is_used = any(node.domain == CONTRIB_DOMAIN for node in self._proto.node)
        if is_used and CONTRIB_DOMAIN not in {opset.domain for opset in self._model.opset_import}:
            self._model.opset_import.append(helper.make_opsetid(CONTRIB_DOMAIN, 1))


def copy_model(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a deep copy of a model."""
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    return copied


def copy_node(node: onnx.NodeProto, inputs: Iterable[str], output: str | None = None) -> onnx.NodeProto:
    """Return a copy of a node with other inputs and, unless it is None, another output."""
    copied = onnx.NodeProto()
    copied.CopyFrom(node)
    copied.input[:] = inputs
    if output is not None:
        copied.output[:] = [output]
    return copied


def probe(
    model: onnx.ModelProto, tensors: Sequence[str]
) -> Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], list[npt.NDArray[Any]]]:
    """Load a model in ONNX Runtime to read float32 tensors inside it.

    Args:
        model: A model with the inputs input_ids and attention_mask.
        tensors: Names of the tensors.

    Returns:
        A function of input_ids and attention_mask, int64 (texts, tokens), that returns the tensors' values.
    """
    # Imported late: edgeembed_runtime turns ONNX Runtime's telemetry off and must be imported before it.
    import onnxruntime

    probed = copy_model(model)
    del probed.graph.output[:]
    probed.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in tensors)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(probed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda ids, mask: session.run(list(tensors), {"input_ids": ids, "attention_mask": mask})


def contrib_node(op_type: str, inputs: list[str], output: str, **attributes: float) -> onnx.NodeProto:
    """Return a node of one of ONNX Runtime's own operators."""
    node: onnx.NodeProto = helper.make_node(op_type, inputs, [output], domain=CONTRIB_DOMAIN)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    return node


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Return the attributes of a node by name."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def is_row_gather(node: onnx.NodeProto) -> bool:
    """Return whether a node is an embedding lookup: a Gather along the first axis."""
    return bool(node.op_type == "Gather" and attributes(node).get("axis", 0) == 0)


def other_input(node: onnx.NodeProto, tensor: str) -> str:
    """Return the input of a binary operator that is not the given tensor."""
    return str(node.input[1] if node.input[0] == tensor else node.input[0])


def _inputs(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the tensors that a node reads, including those that its subgraphs read."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _inputs(inner)


def _reachable(nodes: list[onnx.NodeProto], outputs: Iterable[str]) -> list[onnx.NodeProto]:
    """Return the nodes that the outputs depend on, in order."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(_inputs(node))
            kept.append(node)
    return kept[::-1]
