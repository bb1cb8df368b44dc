from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.precision import PRECISIONS

from ..graphs import evaluate, op_counts, parse  # noqa: TID252  # tests are not a package
from .conftest import IDS, TEXTS, normal


@pytest.mark.parametrize(("precision", "max_error"), [("fp32", 0.0), ("fp16", 1e-3), ("int8", 0.03), ("int4", 0.3)])
def test_a_factorized_embedding_and_consecutive_linear_layers_stay_close(precision: str, max_error: float) -> None:
    model = parse(
        "rows = Gather(table, input_ids) wide = MatMul(rows, w1) again = MatMul(wide, w2)"
        " mean = ReduceMean<keepdims = 0>(again, axis) plain = Gemm(mean, w3, bias) out = Gemm(plain, w4, bias)",
        "float[a, b] out",
        {
            "table": normal(600, 64),
            "axis": np.array([1]),
            "bias": normal(64),
            **{f"w{number}": normal(64, 64, seed=number) / 8 for number in (1, 2, 3, 4)},
        },
    )
    quantized = PRECISIONS[precision].quantize(model, TEXTS)
    onnx.checker.check_model(quantized)
    matmul = {"int8": "MatMulIntegerToFloat", "int4": "MatMulNBits"}.get(precision)
    assert matmul is None or op_counts(quantized)[matmul] == 4
    exact, actual = evaluate(model, IDS), evaluate(quantized, IDS)
    assert np.abs(exact - actual).max() <= max_error * np.abs(exact).max()
