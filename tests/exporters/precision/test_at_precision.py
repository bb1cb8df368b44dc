from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.options import Precision
from edgeembed_exporters.precision import at_precision

from ..graphs import evaluate, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import IDS, TEXTS, normal


@pytest.mark.parametrize(("precision", "farthest"), [("fp32", 0.0), ("fp16", 1e-3), ("int8", 0.03), ("int4", 0.3)])
def test_a_factorised_table_and_products_of_products_stay_close(precision: Precision, farthest: float) -> None:
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
    made = at_precision(model, precision, TEXTS)
    onnx.checker.check_model(made)
    multiplied = {"int8": "MatMulIntegerToFloat", "int4": "MatMulNBits"}.get(precision)
    assert multiplied is None or kinds(made)[multiplied] == 4
    exact, given = evaluate(model, IDS), evaluate(made, IDS)
    assert np.abs(exact - given).max() <= farthest * np.abs(exact).max()
