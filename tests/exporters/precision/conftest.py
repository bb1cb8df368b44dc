from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx

from ..graphs import evaluate, parse  # noqa: TID252  # the tests are no package

Floats = npt.NDArray[np.float32]

IDS = [list(range(20))]
TEXTS = [[1, 2, 3], [4, 5], [30, 31, 32]]


def normal(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def product_of(
    rows: Floats, weight: Floats, bias: Floats | None = None, *, before: str = "x = Identity(looked)"
) -> onnx.ModelProto:
    """A graph that looks rows up by input_ids and multiplies what `before` makes of them with a constant matrix."""
    after = "out = Identity(y)" if bias is None else "out = Add(y, bias)"
    constants = {"rows": rows, "weight": weight} | ({} if bias is None else {"bias": bias})
    return parse(
        f"looked = Gather(rows, input_ids) {before} y = MatMul(x, weight) {after}", "float[a, b, c] out", constants
    )


def error(model: onnx.ModelProto, quantised: onnx.ModelProto) -> float:
    """The largest difference, relative to the largest value."""
    exact, given = evaluate(model, IDS), evaluate(quantised, IDS)
    return float(np.abs(exact - given).max() / np.abs(exact).max())
