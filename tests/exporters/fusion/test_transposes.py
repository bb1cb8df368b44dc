from __future__ import annotations

import numpy as np
import onnx
from edgeembed_exporters.fusion.transposes import fold_transposes

from ..graphs import evaluate, initializers, op_counts, parse  # noqa: TID252  # tests are not a package


def test_shared_transposed_weights_are_stored_once_as_they_are_read() -> None:
    rng = np.random.default_rng(0)
    rows, weight = (rng.normal(size=shape).astype(np.float32) for shape in ((20, 8), (8, 8)))
    model = parse(
        "x = Gather(rows, input_ids) w0 = Transpose<perm = [1, 0]>(weight) y = MatMul(x, w0)"
        " w1 = Transpose(weight) out = MatMul(y, w1)",
        "float[a, b, c] out",
        {"rows": rows, "weight": weight},
    )
    expected = evaluate(model, [[3, 7, 1]])
    fold_transposes(model)
    onnx.checker.check_model(model)
    assert op_counts(model)["Transpose"] == 0
    assert sorted(values.shape for values in initializers(model).values()) == [(8, 8), (20, 8)]
    np.testing.assert_array_equal(evaluate(model, [[3, 7, 1]]), expected)


def test_a_transposed_activation_is_kept() -> None:
    model = parse(
        "x = Gather(rows, input_ids) out = Transpose<perm = [0, 2, 1]>(x)",
        "float[a, b, c] out",
        {"rows": np.ones((20, 8), np.float32)},
    )
    fold_transposes(model)
    assert op_counts(model)["Transpose"] == 1
