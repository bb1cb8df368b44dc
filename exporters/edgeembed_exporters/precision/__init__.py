"""A graph in fewer bits."""

from collections.abc import Sequence

import onnx

from edgeembed_exporters.options import Precision
from edgeembed_exporters.precision import fp16, int4, int8, tables


def at_precision(model: onnx.ModelProto, precision: Precision, token_ids: Sequence[list[int]]) -> onnx.ModelProto:
    """Give a new graph with the same inputs and outputs at a precision.

    Args:
        model: The graph, in float32.
        precision: Which.
        token_ids: Texts to calibrate on, one unpadded row of token ids each; fp32 and fp16 need none.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    if precision == "fp16":
        return fp16.halve_weights(made)
    if precision == "int8":
        tables.tables_in_int8(made)
        return int8.quantise_products(made, token_ids)
    if precision == "int4":
        tables.tables_in_int4(made)
        return int4.quantise_products(made, token_ids)
    return made
