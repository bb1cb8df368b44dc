"""Quantization of embedding tables, which are dequantized row by row as they are looked up."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from edgeembed_exporters.onnx.graph import Graph, contrib_node, is_row_gather
from edgeembed_exporters.quantization.blockwise import QuantizedBlocks, find_row_levels, quantize_rows

# Smaller tables, for instance MPNet's relative positions, save little space and influence every layer.
_MIN_ELEMENTS = 16_384
# With this many rows, float32 scales take a quarter of a megabyte or more: they are stored in float16, which costs one
# Cast node for each lookup.
_MIN_ROWS_FOR_FP16_SCALES = 65_536
_FP16_RELATIVE_ERROR = 2.0**-11
_FP16_MAX = float(np.finfo(np.float16).max)
_INT8_MAX = np.float32(127)
_BLOCK_SIZE = 64
_MIN_BLOCK_SIZE = 16  # of GatherBlockQuantized, which takes powers of two

Array = npt.NDArray[np.float32]
_LookupBuilder = Callable[[Graph, onnx.NodeProto, Array], list[onnx.NodeProto]]


def quantize_embeddings_int8(model: onnx.ModelProto) -> None:
    """Quantize, in place, all large embedding tables to int8 with one scale for each row.

    The error is at most 1/254 of the largest magnitude of the row, however large other rows are. Tables of 16 levels a
    row are stored in 4 bits instead, without any error.

    Args:
        model: A float32 model.
    """
    _quantize_tables(model, _int8_lookup)


def quantize_embeddings_int4(model: onnx.ModelProto) -> None:
    """Quantize, in place, all large embedding tables to 4 bits with one scale for 64 values of a row.

    Tables of 16 levels a row keep them, with one scale for each row.

    Args:
        model: A float32 model.
    """
    _quantize_tables(model, _int4_lookup)


def _quantize_tables(model: onnx.ModelProto, build_lookup: _LookupBuilder) -> None:
    graph = Graph(model)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.nodes:
        is_slice = node.op_type == "Slice"  # of position embeddings
        table = graph.initializer(node.input[0]) if is_slice or is_row_gather(node) else None
        if table is not None and _is_large_table(table):
            exact = None if is_slice else _exact_lookup(graph, node, table)
            build = _int8_slice if is_slice else build_lookup
            replacements[node.output[0]] = exact or build(graph, node, table)
    graph.replace_nodes(replacements)


def _is_large_table(values: npt.NDArray[Any]) -> bool:
    return values.ndim == 2 and values.dtype == np.float32 and values.size >= _MIN_ELEMENTS


def _exact_lookup(graph: Graph, node: onnx.NodeProto, table: Array) -> list[onnx.NodeProto] | None:
    """Return the node that looks up rows of 16 levels, to which students train with `table_bits`; None for others."""
    levels = find_row_levels(table, bits=4) if table.shape[1] % 2 == 0 else None
    return None if levels is None else [_gather_blocks(graph, node, table, levels, np.float32, node.output[0])]


def _int8_lookup(graph: Graph, node: onnx.NodeProto, table: Array) -> list[onnx.NodeProto]:
    """Return the nodes that look up rows of a table with one scale for each row."""
    name, ids, output = node.input[0], node.input[1], node.output[0]
    scales = _row_scales(table)
    rows = graph.add_initializer(f"{name}.rows", np.rint(table / scales).astype(np.int8))
    stored_scales = graph.add_initializer(f"{name}.scales", scales)
    lookup = [helper.make_node("Gather", [stored_scales, ids], [f"{output}.row_scales"])]
    if scales.dtype == np.float16:
        lookup = [
            helper.make_node("Gather", [stored_scales, ids], [f"{output}.row_scales_fp16"]),
            helper.make_node("Cast", [f"{output}.row_scales_fp16"], [f"{output}.row_scales"], to=TensorProto.FLOAT),
        ]
    return [
        helper.make_node("Gather", [rows, ids], [f"{output}.rows_int8"]),
        *lookup,
        helper.make_node("Cast", [f"{output}.rows_int8"], [f"{output}.rows_fp32"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{output}.rows_fp32", f"{output}.row_scales"], [output]),
    ]


def _row_scales(table: Array) -> npt.NDArray[Any]:
    """Return the scale of each row (rows, 1), as float16 if the table has many rows and no scale loses precision."""
    scales: Array = np.abs(table).max(axis=1, keepdims=True) / _INT8_MAX
    scales[scales == 0] = 1
    if len(table) < _MIN_ROWS_FOR_FP16_SCALES or scales.max() > _FP16_MAX:
        return scales
    halved = scales.astype(np.float16)
    return halved if np.all(np.abs(halved - scales) <= scales * _FP16_RELATIVE_ERROR) else scales


def _int8_slice(graph: Graph, node: onnx.NodeProto, table: Array) -> list[onnx.NodeProto]:
    """Return the nodes that slice the first rows of a table with one scale for each column.

    Tables of positions are small, so they are int8 at int4 too. Column scales need no lookup.
    """
    name, output = node.input[0], node.output[0]
    scales = np.abs(table).max(axis=0) / _INT8_MAX
    scales[scales == 0] = 1
    rows = graph.add_initializer(f"{name}.rows", np.rint(table / scales).astype(np.int8))
    stored_scales = graph.add_initializer(f"{name}.scales", scales)
    return [
        helper.make_node("Slice", [rows, *node.input[1:]], [f"{output}.rows_int8"]),
        helper.make_node("Cast", [f"{output}.rows_int8"], [f"{output}.rows_fp32"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{output}.rows_fp32", stored_scales], [output]),
    ]


def _int4_lookup(graph: Graph, node: onnx.NodeProto, table: Array) -> list[onnx.NodeProto]:
    """Return the nodes that look up rows of a table of 4 bits; rows of odd width, which cannot be packed, are int8."""
    width = table.shape[1]
    if width % 2:
        return _int8_lookup(graph, node, table)
    blocks = quantize_rows(table, _BLOCK_SIZE, bits=4)
    output = node.output[0]
    gather = _gather_blocks(graph, node, table, blocks, np.float16, f"{output}.rows_fp16")
    return [gather, helper.make_node("Cast", [f"{output}.rows_fp16"], [output], to=TensorProto.FLOAT)]


def _gather_blocks(
    graph: Graph, node: onnx.NodeProto, table: Array, blocks: QuantizedBlocks, scale_type: npt.DTypeLike, output: str
) -> onnx.NodeProto:
    """Return the node that looks up rows of a table in 4 bits; they have the type of the scales."""
    name, (count, width) = node.input[0], table.shape
    block_size = max(_MIN_BLOCK_SIZE, 1 << (blocks.quantized.shape[2] - 1).bit_length())
    inputs = [
        graph.add_initializer(f"{name}.rows", blocks.packed().reshape(count, -1)[:, : width // 2]),
        node.input[1],
        graph.add_initializer(f"{name}.scales", blocks.scales.astype(scale_type)),
    ]
    parameters = {"bits": blocks.bits, "block_size": block_size, "quantize_axis": 1, "gather_axis": 0}
    return contrib_node("GatherBlockQuantized", inputs, output, **parameters)
