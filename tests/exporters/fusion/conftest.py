from __future__ import annotations

import numpy as np
import onnx

from ..graphs import Array, evaluate  # noqa: TID252  # tests are not a package

LIMIT = 24
ROWS = 60
SIZES = [(1, 1), (1, 9), (4, 7), (3, LIMIT)]


def padded(batch: int, tokens: int) -> tuple[Array, Array]:
    """Return random ids and a mask: the first row has no padding, the others have it right and left in turn."""
    mask = np.ones((batch, tokens), dtype=np.int64)
    for row in range(1, batch):
        length = max(1, tokens * row // batch)
        mask[row, slice(length, None) if row % 2 else slice(None, tokens - length)] = 0
    return np.random.default_rng(batch * 100 + tokens).integers(5, ROWS, (batch, tokens)) * mask, mask


def run(model: onnx.ModelProto, ids: Array, mask: Array) -> Array:
    """Run a model and return its first output at the tokens that are not padding."""
    values: Array = evaluate(model, ids, model.graph.output[0].name, mask=mask)[mask.astype(bool)]
    return values


def assert_same_values(model: onnx.ModelProto, fused: onnx.ModelProto) -> None:
    onnx.checker.check_model(fused)
    for batch, tokens in SIZES:
        feeds = padded(batch, tokens)
        np.testing.assert_allclose(run(fused, *feeds), run(model, *feeds), atol=1e-5)
