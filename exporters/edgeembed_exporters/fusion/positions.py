"""Positions counted from 0 as the beginning of their table, which holds too what is added to every token."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.editing import Editor, attributes, looks_up_rows, other_input


@dataclass(frozen=True)
class _Lookup:
    """A table of positions, the node that looks them up, and the sum that it becomes part of.

    Attributes:
        node: Looks up positions 0 to the text's length.
        table: float32 (positions, width).
        length: The name of the text's length, int64 (1,).
        sum: Adds the positions to something.
    """

    node: onnx.NodeProto
    table: npt.NDArray[np.float32]
    length: str
    sum: onnx.NodeProto


def fuse_positions(model: onnx.ModelProto) -> None:
    """Read, in place, positions as one piece of their table, and add to that what is added beside it to all tokens.

    Positions that depend on the text's ids, as RoBERTa's do, stay as they are.

    Args:
        model: The graph, in float32.
    """
    editor = Editor(model)
    found = [lookup for node in editor.graph.node if (lookup := _lookup(editor, node)) is not None]
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for lookup in found:
        replacements |= _replacements(editor, lookup)
    editor.replace(replacements)


def _replacements(editor: Editor, lookup: _Lookup) -> dict[str, list[onnx.NodeProto]]:
    name, added = lookup.node.output[0], lookup.sum
    other = other_input(added, name)
    table, rest = _with_constants(editor, lookup.table, other)
    first, along = (editor.add_constant(f"fused.{word}", np.array([0], dtype=np.int64)) for word in ("first", "along"))
    stored = editor.add_constant(f"{lookup.node.input[0]}.positions", table)
    return {
        name: [helper.make_node("Slice", [stored, first, lookup.length, along], [name])],
        added.output[0]: [helper.make_node("Add", [rest, name], added.output)],
    }


def _with_constants(editor: Editor, table: npt.NDArray[np.float32], tensor: str) -> tuple[npt.NDArray[np.float32], str]:
    """Give a table with the rows that are added to a tensor, and the tensor without them."""
    node = editor.maker(tensor)
    if node is None or node.op_type != "Add" or len(editor.readers(tensor)) != 1:
        return table, tensor
    for given, other in (node.input, node.input[::-1]):
        row = editor.constant(given)
        if row is not None and row.shape[-1:] == table.shape[1:] and row.size == table.shape[1]:
            return _with_constants(editor, table + row.reshape(-1), other)
    return table, tensor


def _lookup(editor: Editor, node: onnx.NodeProto) -> _Lookup | None:
    table = editor.constant(node.input[0]) if looks_up_rows(node) else None
    length = None if table is None else _counted(editor, node.input[1], len(table))
    readers = editor.readers(node.output[0])
    if table is None or length is None or len(readers) != 1 or readers[0].op_type != "Add":
        return None
    return _Lookup(node, table, length, readers[0])


def _counted(editor: Editor, tensor: str, most: int) -> str | None:
    """Give the length of rows (1, length) that count from 0; None of any other."""
    node = editor.maker(tensor)
    if node is None or node.op_type != "Slice" or len(node.input) < 4:
        return None
    numbers, steps = editor.constant(node.input[0]), editor.scalar(node.input[4]) if len(node.input) > 4 else 1
    start, axis, length = editor.scalar(node.input[1]), editor.scalar(node.input[3]), editor.maker(node.input[2])
    if numbers is None or numbers.ndim != 2 or (start, axis, steps) != (0, 1, 1):
        return None
    if numbers.shape[0] != 1 or not np.array_equal(numbers[0, :most], np.arange(min(most, numbers.shape[1]))):
        return None
    if length is None or length.op_type != "Shape" or attributes(length).get("start") != 1:
        return None
    return str(node.input[2]) if attributes(length).get("end") == 2 else None
