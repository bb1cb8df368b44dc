from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import numpy_helper, parser

Array = npt.NDArray[Any]

LIMIT = 24
ROWS = 60
SIZES = [(1, 1), (1, 9), (4, 7), (3, LIMIT)]


def parse(statements: str, output: str, constants: dict[str, Array]) -> onnx.ModelProto:
    """A graph of input_ids and attention_mask, written in ONNX's own text form."""
    inputs = "int64[batch, tokens] input_ids, int64[batch, tokens] attention_mask"
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 18]> g ({inputs}) => ({output}) {{ {statements} }}'
    )
    model.graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in constants.items())
    return model


def kinds(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def padded(batch: int, tokens: int) -> tuple[Array, Array]:
    """Ids and a mask: the first row is whole, others are padded on the right and on the left in turn."""
    mask = np.ones((batch, tokens), dtype=np.int64)
    for row in range(1, batch):
        length = max(1, tokens * row // batch)
        mask[row, slice(length, None) if row % 2 else slice(None, tokens - length)] = 0
    return np.random.default_rng(batch * 100 + tokens).integers(5, ROWS, (batch, tokens)) * mask, mask


def run(model: onnx.ModelProto, ids: Array, mask: Array) -> Array:
    """What the first output says of the tokens that are not padding."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    given: Array = session.run([model.graph.output[0].name], {"input_ids": ids, "attention_mask": mask})[0]
    seen: Array = given[mask.astype(bool)]
    return seen


def assert_same_values(model: onnx.ModelProto, fused: onnx.ModelProto) -> None:
    onnx.checker.check_model(fused)
    for batch, tokens in SIZES:
        feeds = padded(batch, tokens)
        np.testing.assert_allclose(run(fused, *feeds), run(model, *feeds), atol=1e-5)
