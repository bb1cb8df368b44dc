"""What most of a graph's time and half of its size goes into: products with constant matrices."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.editing import Editor, attributes

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Product:
    """A product of an activation with a constant matrix, and the bias that is added to it.

    Attributes:
        node: The node that multiplies.
        weight: The matrix, float32 (channels, columns).
        bias: float32 (columns,); zeros where none is added.
        output: The name of what it gives, bias included.
    """

    node: onnx.NodeProto
    weight: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]
    output: str

    @property
    def activation(self) -> str:
        """The name of the first factor, (..., channels)."""
        return str(self.node.input[0])


@dataclass(frozen=True)
class Group:
    """All products of one activation. They are done as one, since the activation is then read and quantized once.

    Attributes:
        products: One or more.
    """

    products: tuple[Product, ...]

    @property
    def activation(self) -> str:
        """The name of the first factor, (..., channels)."""
        return self.products[0].activation

    @property
    def weights(self) -> tuple[str, ...]:
        """The names of the matrices, which layers may share."""
        return tuple(str(product.node.input[1]) for product in self.products)

    @property
    def weight(self) -> npt.NDArray[np.float32]:
        """The matrices side by side, (channels, columns of all)."""
        return np.concatenate([product.weight for product in self.products], axis=1)

    @property
    def bias(self) -> npt.NDArray[np.float32]:
        """The biases one after the other."""
        return np.concatenate([product.bias for product in self.products])

    @property
    def output(self) -> str:
        """The name of what the product of all gives."""
        return self.products[0].output if len(self.products) == 1 else f"{self.products[0].output}.all"

    def replacements(self, editor: Editor, nodes: list[onnx.NodeProto]) -> dict[str, list[onnx.NodeProto]]:
        """Say what stands where the products stood.

        Args:
            editor: The graph's.
            nodes: What gives `output`.
        """
        if len(self.products) > 1:
            sizes = np.array([len(product.bias) for product in self.products], dtype=np.int64)
            inputs = [self.output, editor.add_constant(f"{self.output}.sizes", sizes)]
            outputs = [product.output for product in self.products]
            nodes = [*nodes, helper.make_node("Split", inputs, outputs, axis=-1)]
        replaced: dict[str, list[onnx.NodeProto]] = {product.output: [] for product in self.products}
        return replaced | {self.products[0].node.output[0]: nodes}


def find_products(editor: Editor) -> list[Group]:
    """Give every product with a constant matrix, grouped by activation."""
    groups: dict[str, list[Product]] = {}
    for node in editor.graph.node:
        weight = editor.constant(node.input[1]) if node.op_type == "MatMul" else None
        if weight is not None and weight.ndim == 2:
            groups.setdefault(node.input[0], []).append(_with_bias(editor, node, weight))
    return [Group(tuple(products)) for products in groups.values()]


def over_shared(
    groups: Iterable[Group], measured: dict[str, npt.NDArray[T]], combine: Callable[..., npt.NDArray[T]]
) -> dict[str, npt.NDArray[T]]:
    """Give what was measured of activations, the same for all that are multiplied with the same matrices.

    So layers that share their weights, as ALBERT's do, share those in fewer bits too.

    Args:
        groups: The products.
        measured: By activation.
        combine: Makes one measure of two.
    """
    activations: dict[tuple[str, ...], list[str]] = {}
    for group in groups:
        activations.setdefault(group.weights, []).append(group.activation)
    combined = {}
    for names in activations.values():
        combined.update(dict.fromkeys(names, functools.reduce(combine, (measured[name] for name in names))))
    return combined


def _with_bias(editor: Editor, node: onnx.NodeProto, weight: npt.NDArray[np.float32]) -> Product:
    readers, output = editor.readers(node.output[0]), node.output[0]
    if len(readers) == 1 and readers[0].op_type == "Add":
        first, second = readers[0].input
        bias = editor.constant(second if first == output else first)
        if bias is not None and bias.shape == weight.shape[1:]:
            return Product(node, weight, bias, readers[0].output[0])
    return Product(node, weight, np.zeros(weight.shape[1], dtype=np.float32), output)


def split_gemms(model: onnx.ModelProto) -> None:
    """Write, in place, each Gemm with constant weights, which torch makes of a Dense module, as MatMul and Add."""
    editor = Editor(model)
    editor.replace({node.output[0]: _split(editor, node) for node in editor.graph.node if _is_layer(editor, node)})


def _is_layer(editor: Editor, node: onnx.NodeProto) -> bool:
    if node.op_type != "Gemm" or not editor.is_constant(node.input[1]):
        return False
    given = attributes(node)
    return given.get("alpha", 1) == 1 and given.get("beta", 1) == 1 and not given.get("transA", 0)


def _split(editor: Editor, node: onnx.NodeProto) -> list[onnx.NodeProto]:
    output, weight = node.output[0], editor.constant(node.input[1])
    if weight is None:
        return [node]
    matrix = editor.add_constant(f"{output}.matrix", weight.T if attributes(node).get("transB", 0) else weight)
    if len(node.input) < 3:
        return [helper.make_node("MatMul", [node.input[0], matrix], [output])]
    return [
        helper.make_node("MatMul", [node.input[0], matrix], [f"{output}.product"]),
        helper.make_node("Add", [f"{output}.product", node.input[2]], [output]),
    ]
