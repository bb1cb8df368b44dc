"""Matrix products in int8, such that a vector depends neither on its batch nor on the processor.

Each choice is against a measured fault of onnxruntime's dynamic quantization, which gives a whole batch one scale:

- Activations get a scale of their own for every token (ZeroQuant, Yao et al. 2022, section 4.1), so that vectors do not
  depend on the batch.
- Channels whose activations are large are scaled down, and their weights up (SmoothQuant, Xiao et al. 2023,
  equation 4): those of the residual stream, where a few channels dwarf the others. What comes out of an attention, a
  GELU or a ReLU is even enough: with smoothing it was no nearer to the model, only slower.
- What comes out of a GELU or ReLU is never below -0.17 or 0. Only half of signed levels would ever be used, so it is
  shifted up first and gets unsigned ones; the shift's part of a product is a constant, which goes with the bias.
- Products of one level and one weight fit twice into 16 bits, `2 * 180 * 91 < 2**15`: processors with AVX2 but
  without VNNI add them in pairs there, and with 8 bits each they would saturate. They multiply levels as they are
  stored, before the level of zero is taken off, so that is 90 and not 128.

With all-MiniLM-L6-v2 docs/results/export.md has the figures.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.editing import Editor, contrib_node
from edgeembed_exporters.precision.calibration import measure_peaks
from edgeembed_exporters.precision.products import Group, find_products, over_shared, split_gemms

Array = npt.NDArray[np.float32]

_LEVELS = 90  # either side of zero, for activations
_WEIGHT_LEVELS = 91
# Halfway between activations and weights, the paper's default: on a six-layer teacher as good as 0.6, and better
# than 0.4 and 0.7.
_SMOOTHING = 0.5
_TINY = 1e-5
# The least value that a function gives; GELU's is -0.16997.
_LEAST = {"Gelu": -0.17, "Relu": 0.0}
_EVEN = {*_LEAST, "MultiHeadAttention"}


def quantise_products(model: onnx.ModelProto, token_ids: Iterable[list[int]]) -> onnx.ModelProto:
    """Give the graph with every product with a constant matrix done in int8.

    Args:
        model: The graph, in float32.
        token_ids: Texts to calibrate on, one unpadded row of token ids each; a few dozen are enough.

    Returns:
        A new graph with the same inputs and outputs.
    """
    quantised = onnx.ModelProto()
    quantised.CopyFrom(model)
    split_gemms(quantised)
    editor = Editor(quantised)
    groups = find_products(editor)
    peaks = measure_peaks(quantised, [group.activation for group in groups], token_ids)
    peaks = over_shared(groups, peaks, np.maximum)
    rewriting = _Rewriting(editor)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for group in groups:
        replacements |= group.replacements(editor, rewriting.rewrite(group, peaks[group.activation]))
    editor.replace(replacements)
    return quantised


def _smoothing_factors(group: Group, peak: Array) -> Array:
    """Give divisors of an activation's channels, which multiply the rows of its weights: (channels,)."""
    weight = np.abs(group.weight).max(axis=1)
    factor = np.maximum(peak, _TINY) ** _SMOOTHING / np.maximum(weight, _TINY) ** (1 - _SMOOTHING)
    smoothing: Array = (factor / np.exp(np.log(factor).mean())).astype(np.float32)
    return smoothing


class _Rewriting:
    """Writes the integer form of products."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._last_axis = editor.add_constant("int8.last_axis", np.array([-1], dtype=np.int64))

    def rewrite(self, group: Group, peak: Array) -> list[onnx.NodeProto]:
        name, made_by = group.activation, self._editor.maker(group.activation)
        kind = "" if made_by is None else made_by.op_type
        least, levels = _LEAST.get(kind), self._levels(_LEAST.get(kind))
        factors = None if kind in _EVEN else _smoothing_factors(group, peak)
        nodes, prepared, height = self._prepare(name, factors, least)
        nodes += self._quantise(name, prepared, height, levels)
        return nodes + self._multiply(group, np.ones_like(peak) if factors is None else factors, least or 0, levels)

    def _levels(self, least: float | None) -> tuple[str, str]:
        """Give a level's size relative to the peak, and the level of zero."""
        kind, levels, zero = ("signed", _LEVELS, _LEVELS) if least is None else ("unsigned", 2 * _LEVELS, 0)
        step = self._editor.add_constant(f"int8.{kind}_step", np.array(1 / levels, dtype=np.float32))
        return step, self._editor.add_constant(f"int8.{kind}_zero", np.array(zero, dtype=np.uint8))

    def _prepare(self, name: str, factors: Array | None, least: float | None) -> tuple[list[onnx.NodeProto], str, str]:
        """Give the nodes that smooth an activation or shift it up, what they give, and its height: nowhere negative."""
        node, nodes = helper.make_node, []
        if factors is not None:
            divisors = self._editor.add_constant(f"{name}.smoothing", 1 / factors)
            nodes.append(node("Mul", [name, divisors], [f"{name}.smoothed"]))
            name = f"{name}.smoothed"
        if least is None:
            return [*nodes, node("Abs", [name], [f"{name}.height"])], name, f"{name}.height"
        if least < 0:
            shift = self._editor.add_constant(f"{name}.shift", np.array(-least, dtype=np.float32))
            nodes.append(node("Add", [name, shift], [f"{name}.shifted"]))
            name = f"{name}.shifted"
        return nodes, name, name

    def _quantise(self, name: str, prepared: str, height: str, levels: tuple[str, str]) -> list[onnx.NodeProto]:
        """Give each token's peak (..., 1), and what was prepared / peak as uint8 levels.

        Of a row of zeros, 0 / 0 becomes some level or other, which is multiplied by the peak, 0, in the end.
        """
        node = helper.make_node
        return [
            node("ReduceMax", [height, self._last_axis], [f"{name}.peaks"], keepdims=1),
            node("Div", [prepared, f"{name}.peaks"], [f"{name}.relative"]),
            node("QuantizeLinear", [f"{name}.relative", *levels], [f"{name}.levels"]),
        ]

    def _multiply(self, group: Group, factors: Array, least: float, levels: tuple[str, str]) -> list[onnx.NodeProto]:
        """Give levels * weights, times the scales of both, plus the bias less the shift's part."""
        name, output, node = group.activation, group.output, helper.make_node
        smoothed = group.weight * factors[:, None]
        scales = np.maximum(np.abs(smoothed).max(axis=0), np.float32(1e-12)) / np.float32(_WEIGHT_LEVELS)  # (columns,)
        weight = np.rint(smoothed / scales).astype(np.int8)
        bias = group.bias + least * (weight * scales / factors[:, None]).sum(axis=0)
        step, zero = levels
        inputs = [
            f"{name}.levels",
            self._editor.add_constant(f"{output}.weight", weight),
            step,
            self._editor.add_constant(f"{output}.scales", scales),
            zero,
        ]
        constant = self._editor.add_constant(f"{output}.bias", bias.astype(np.float32))
        return [
            contrib_node("MatMulIntegerToFloat", inputs, f"{output}.unscaled"),
            node("Mul", [f"{output}.unscaled", f"{name}.peaks"], [f"{output}.scaled"]),
            node("Add", [f"{output}.scaled", constant], [output]),
        ]
