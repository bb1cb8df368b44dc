"""Helpers for tests: parse small models in ONNX's text format, run them, inspect them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, parser

Array = npt.NDArray[Any]


def parse(statements: str, output: str, initializers: dict[str, Array]) -> onnx.ModelProto:
    """Return a model with the inputs input_ids and attention_mask."""
    inputs = "int64[batch, tokens] input_ids, int64[batch, tokens] attention_mask"
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 18, "com.microsoft": 1]> g ({inputs}) => ({output}) {{ {statements} }}'
    )
    model.graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in initializers.items())
    return model


def op_counts(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def initializers(model: onnx.ModelProto) -> dict[str, Array]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def evaluate(model: onnx.ModelProto, ids: Any, name: str = "out", *, mask: Any = None) -> Array:
    """Run a model and return any of its tensors, whether it is an output or not."""
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    if name not in {output.name for output in probe.graph.output}:
        dtype = TensorProto.UINT8 if name.endswith(".quantized") else TensorProto.FLOAT
        probe.graph.output.append(helper.make_tensor_value_info(name, dtype, None))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    input_ids = np.asarray(ids, dtype=np.int64)
    feeds = {"input_ids": input_ids, "attention_mask": np.ones_like(input_ids) if mask is None else mask}
    values: Array = session.run([name], feeds)[0]
    return values
