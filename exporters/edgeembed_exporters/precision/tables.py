"""Embedding tables in fewer bits: what a text needs of one is a few rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from edgeembed_exporters.editing import Editor, contrib_node, looks_up_rows
from edgeembed_exporters.precision.blocks import round_rows

# Smaller tables (MPNet's relative positions, say) save next to nothing and steer every layer.
_SMALLEST_QUANTIZED = 16_384
# Of so many rows the scales alone are a quarter of a megabyte and more: halved, if one node widens what is looked up.
_MANY_ROWS = 65_536
_HALF_PRECISION = 2.0**-11
_LARGEST_HALF = float(np.finfo(np.float16).max)
_BLOCK = 64

Array = npt.NDArray[np.float32]
Write = Callable[[Editor, onnx.NodeProto, Array], list[onnx.NodeProto]]


def tables_in_int8(model: onnx.ModelProto) -> None:
    """Store, in place, the rows of all large tables as int8, one scale a row.

    One scale a row bounds the error by 1/254 of the row's largest number, however long other rows are.

    Args:
        model: The graph, in float32.
    """
    _rewrite(model, _in_int8)


def tables_in_int4(model: onnx.ModelProto) -> None:
    """Store, in place, the rows of all large tables in 4 bits, one scale for 64 numbers.

    Args:
        model: The graph, in float32.
    """
    _rewrite(model, _in_int4)


def _rewrite(model: onnx.ModelProto, write: Write) -> None:
    editor = Editor(model)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for node in editor.graph.node:
        is_cut = node.op_type == "Slice"  # what reads the first of a table's rows, as of positions
        table = editor.constant(node.input[0]) if is_cut or looks_up_rows(node) else None
        if table is not None and _is_large(table):
            replacements[node.output[0]] = _cut_in_int8(editor, node, table) if is_cut else write(editor, node, table)
    editor.replace(replacements)


def _is_large(values: npt.NDArray[Any]) -> bool:
    return values.ndim == 2 and values.dtype == np.float32 and values.size >= _SMALLEST_QUANTIZED


def _in_int8(editor: Editor, node: onnx.NodeProto, table: Array) -> list[onnx.NodeProto]:
    output = node.output[0]
    scales = _row_scales(table)
    rows = editor.add_constant(f"{node.input[0]}.rows", np.rint(table / scales).astype(np.int8))
    stored = editor.add_constant(f"{node.input[0]}.scales", scales)
    look_up = [helper.make_node("Gather", [stored, node.input[1]], [f"{output}.row_scales"])]
    if scales.dtype == np.float16:
        look_up = [
            helper.make_node("Gather", [stored, node.input[1]], [f"{output}.row_halves"]),
            helper.make_node("Cast", [f"{output}.row_halves"], [f"{output}.row_scales"], to=TensorProto.FLOAT),
        ]
    return [
        helper.make_node("Gather", [rows, node.input[1]], [f"{output}.row_levels"]),
        *look_up,
        helper.make_node("Cast", [f"{output}.row_levels"], [f"{output}.row"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{output}.row", f"{output}.row_scales"], [output]),
    ]


def _row_scales(table: Array) -> npt.NDArray[Any]:
    scales: Array = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
    scales[scales == 0] = 1
    if len(table) < _MANY_ROWS or scales.max() > _LARGEST_HALF:
        return scales
    halves = scales.astype(np.float16)
    return halves if np.all(np.abs(halves - scales) <= scales * _HALF_PRECISION) else scales


def _cut_in_int8(editor: Editor, node: onnx.NodeProto, table: Array) -> list[onnx.NodeProto]:
    """Give the first rows of a table, at any precision: such tables are small, a scale a column needs no look-up."""
    output = node.output[0]
    scales = np.abs(table).max(axis=0) / np.float32(127)
    scales[scales == 0] = 1
    rows = editor.add_constant(f"{node.input[0]}.rows", np.rint(table / scales).astype(np.int8))
    return [
        helper.make_node("Slice", [rows, *node.input[1:]], [f"{output}.row_levels"]),
        helper.make_node("Cast", [f"{output}.row_levels"], [f"{output}.row"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{output}.row", editor.add_constant(f"{node.input[0]}.scales", scales)], [output]),
    ]


def _in_int4(editor: Editor, node: onnx.NodeProto, table: Array) -> list[onnx.NodeProto]:
    if table.shape[1] % 2:
        return _in_int8(editor, node, table)
    output = node.output[0]
    blocks = round_rows(table, _BLOCK, bits=4)
    packed = blocks.packed().reshape(len(table), -1)[:, : table.shape[1] // 2]
    inputs = [
        editor.add_constant(f"{node.input[0]}.rows", packed),
        node.input[1],
        editor.add_constant(f"{node.input[0]}.scales", blocks.scales.astype(np.float16)),
    ]
    choices = {"bits": blocks.bits, "block_size": _BLOCK, "quantize_axis": 1, "gather_axis": 0}
    found = contrib_node("GatherBlockQuantized", inputs, f"{output}.fp16", **choices)
    return [found, helper.make_node("Cast", [f"{output}.fp16"], [output], to=TensorProto.FLOAT)]
