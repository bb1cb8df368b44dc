"""Replace the Gather of position embeddings by a Slice, and add constant rows to the table beforehand.

Positions count from 0, so their embeddings are the first rows of the table. Rows that are added to every token, as
the embedding of the only token type is, become part of the table.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from edgeembed_exporters.onnx.graph import Graph, attributes, is_row_gather, other_input


@dataclass(frozen=True)
class _PositionLookup:
    """The lookup of position embeddings, and the node that adds them to the token embeddings.

    Attributes:
        gather: Looks up positions 0 to the number of tokens.
        table: float32 (positions, width).
        length: Name of the number of tokens, int64 (1,).
        add: Adds the position embeddings.
    """

    gather: onnx.NodeProto
    table: npt.NDArray[np.float32]
    length: str
    add: onnx.NodeProto


def fuse_positions(model: onnx.ModelProto) -> None:
    """Slice, in place, position embeddings from a table that includes the constant rows added beside them.

    Positions that depend on the token ids, as RoBERTa's do, are kept.

    Args:
        model: A float32 model.
    """
    graph = Graph(model)
    matches = [match for node in graph.nodes if (match := _match_lookup(graph, node)) is not None]
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for match in matches:
        replacements |= _replacements(graph, match)
    graph.replace_nodes(replacements)


def _replacements(graph: Graph, lookup: _PositionLookup) -> dict[str, list[onnx.NodeProto]]:
    name, add = lookup.gather.output[0], lookup.add
    table, tokens = _absorb_constant_rows(graph, lookup.table, other_input(add, name))
    zero = np.array([0], dtype=np.int64)
    start, axis = (graph.add_initializer(f"fused.slice_{word}", zero) for word in ("start", "axis"))
    stored = graph.add_initializer(f"{lookup.gather.input[0]}.positions", table)
    return {
        name: [helper.make_node("Slice", [stored, start, lookup.length, axis], [name])],
        add.output[0]: [helper.make_node("Add", [tokens, name], add.output)],
    }


def _absorb_constant_rows(
    graph: Graph, table: npt.NDArray[np.float32], tensor: str
) -> tuple[npt.NDArray[np.float32], str]:
    """Add the constant rows that are part of a sum to a table; return the table and the rest of the sum."""
    node = graph.producer(tensor)
    if node is None or node.op_type != "Add" or len(graph.consumers(tensor)) != 1:
        return table, tensor
    for constant, rest in (node.input, node.input[::-1]):
        row = graph.initializer(constant)
        if row is not None and row.shape[-1:] == table.shape[1:] and row.size == table.shape[1]:
            return _absorb_constant_rows(graph, table + row.reshape(-1), rest)
    return table, tensor


def _match_lookup(graph: Graph, node: onnx.NodeProto) -> _PositionLookup | None:
    table = graph.initializer(node.input[0]) if is_row_gather(node) else None
    length = None if table is None else _match_arange(graph, node.input[1], len(table))
    consumers = graph.consumers(node.output[0])
    if table is None or length is None or len(consumers) != 1 or consumers[0].op_type != "Add":
        return None
    return _PositionLookup(node, table, length, consumers[0])


def _match_arange(graph: Graph, tensor: str, max_length: int) -> str | None:
    """Return the name of the length of position ids (1, length) that count from 0, None for other ids."""
    node = graph.producer(tensor)
    if node is None or node.op_type != "Slice" or len(node.input) < 4:
        return None
    ids, step = graph.initializer(node.input[0]), graph.scalar(node.input[4]) if len(node.input) > 4 else 1
    start, axis, length = graph.scalar(node.input[1]), graph.scalar(node.input[3]), graph.producer(node.input[2])
    if ids is None or ids.ndim != 2 or (start, axis, step) != (0, 1, 1):
        return None
    if ids.shape[0] != 1 or not np.array_equal(ids[0, :max_length], np.arange(min(max_length, ids.shape[1]))):
        return None
    if length is None or length.op_type != "Shape" or attributes(length).get("start") != 1:
        return None
    return str(node.input[2]) if attributes(length).get("end") == 2 else None
