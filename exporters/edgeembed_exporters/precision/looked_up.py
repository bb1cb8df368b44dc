"""Products of a table's rows, which are stored in int8: the stored levels themselves are multiplied.

So nothing is rounded but the weights. A row's levels are 127 either side of zero, which makes 255 once they have no
sign; so weights have but 64: `2 * 255 * 64 < 2**15` (see `int8`).
"""

from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper

from edgeembed_exporters.editing import Editor, contrib_node
from edgeembed_exporters.precision.columns import round_columns
from edgeembed_exporters.precision.products import Group

_ZERO = 128
_WEIGHT_LEVELS = 64


class Rows(NamedTuple):
    """Rows that are looked up in a table, as `tables_in_int8` stores it.

    Attributes:
        table: The table's name, int8 (rows, width).
        ids: The name of the rows' numbers.
        scales: The name of what a level of each row stands for, float32 (..., 1).
    """

    table: str
    ids: str
    scales: str


def stored_rows(editor: Editor, group: Group) -> Rows | None:
    """Give the rows that a group's activation is; None where it is anything else, or read by something else."""
    scaled = editor.maker(group.activation)
    if scaled is None or scaled.op_type != "Mul" or len(editor.readers(group.activation)) > len(group.products):
        return None
    cast = editor.maker(scaled.input[0])
    found = editor.maker(cast.input[0]) if cast is not None and cast.op_type == "Cast" else None
    if found is None or found.op_type != "Gather" or editor.maker(scaled.input[1]) is None:
        return None
    table = editor.constant(found.input[0])
    is_alone = table is not None and table.dtype == np.int8 and len(editor.readers(found.input[0])) == 1
    return Rows(found.input[0], found.input[1], scaled.input[1]) if is_alone else None


def multiply_looked_up(editor: Editor, group: Group, rows: Rows) -> list[onnx.NodeProto]:
    """Give the nodes of a group's product.

    Args:
        editor: The graph's.
        group: The products.
        rows: What they multiply.
    """
    output, fixed = group.output, editor.add_constant
    table = np.asarray(editor.constant(rows.table), dtype=np.int16) + _ZERO
    levels, scales = round_columns(group.weight, _WEIGHT_LEVELS)
    stored = fixed(f"{rows.table}.unsigned", table.astype(np.uint8))
    one, zero = fixed("int8.one", np.array(1, dtype=np.float32)), fixed("int8.middle", np.array(_ZERO, dtype=np.uint8))
    weights = [fixed(f"{output}.weight", levels), one, fixed(f"{output}.scales", scales), zero]
    nodes = [
        helper.make_node("Gather", [stored, rows.ids], [f"{group.activation}.levels"]),
        contrib_node("MatMulIntegerToFloat", [f"{group.activation}.levels", *weights], f"{output}.unscaled"),
    ]
    if not group.bias.any():
        return [*nodes, helper.make_node("Mul", [f"{output}.unscaled", rows.scales], [output])]
    return [
        *nodes,
        helper.make_node("Mul", [f"{output}.unscaled", rows.scales], [f"{output}.scaled"]),
        helper.make_node("Add", [f"{output}.scaled", fixed(f"{output}.bias", group.bias)], [output]),
    ]
