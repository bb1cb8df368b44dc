"""Quantization of an ONNX model: fp16, int8 or int4 weights, and int8 matmuls."""

from collections.abc import Callable, Sequence

import onnx

from edgeembed_exporters.config import Precision
from edgeembed_exporters.onnx.graph import copy_model
from edgeembed_exporters.quantization.fp16 import convert_to_fp16
from edgeembed_exporters.quantization.int4 import quantize_int4
from edgeembed_exporters.quantization.int8 import quantize_int8

__all__ = ["quantize"]

_QUANTIZERS: dict[Precision, Callable[[onnx.ModelProto, Sequence[list[int]]], onnx.ModelProto]] = {
    "fp32": lambda model, _: copy_model(model),
    "fp16": lambda model, _: convert_to_fp16(model),
    "int8": quantize_int8,
    "int4": quantize_int4,
}


def quantize(model: onnx.ModelProto, precision: Precision, token_ids: Sequence[list[int]]) -> onnx.ModelProto:
    """Convert a model to a precision.

    Args:
        model: A float32 model, fused (`edgeembed_exporters.fusion`); it is not changed.
        precision: The precision of weights and, at int8, of matmuls.
        token_ids: Calibration text: the unpadded token ids of each text. fp32 and fp16 do not read it.

    Returns:
        A new model with the same inputs and outputs.
    """
    return _QUANTIZERS[precision](model, token_ids)
