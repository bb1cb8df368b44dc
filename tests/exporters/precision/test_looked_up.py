from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from edgeembed_exporters.precision.int8 import quantise_products
from edgeembed_exporters.precision.tables import tables_in_int8

from ..graphs import constants_of, evaluate, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import TEXTS, Floats, error, normal

ROWS = 600


def product_of_rows(rows: Floats, bias: Any = None) -> onnx.ModelProto:
    after = "out = Identity(y)" if bias is None else "out = Add(y, bias)"
    constants = {"rows": rows, "weight": normal(32, 24, seed=1), **({} if bias is None else {"bias": bias})}
    return parse(f"x = Gather(rows, input_ids) y = MatMul(x, weight) {after}", "float[a, b, c] out", constants)


def quantize(model: onnx.ModelProto) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    tables_in_int8(made)
    return quantise_products(made, TEXTS)


@pytest.mark.parametrize("bias", [None, normal(24, seed=2)], ids=["no bias", "bias"])
def test_the_stored_levels_of_rows_are_multiplied(bias: Any) -> None:
    model = product_of_rows(normal(ROWS, 32) * np.logspace(-1, 1, ROWS, dtype=np.float32)[:, None], bias)
    made = quantize(model)
    onnx.checker.check_model(made)
    assert (kinds(made)["Gather"], kinds(made)["QuantizeLinear"], kinds(made)["Cast"]) == (2, 0, 0)
    assert error(model, made) < 0.02


def test_sums_of_two_products_fit_16_bits() -> None:
    rows = normal(ROWS, 32)
    rows[3], rows[4] = 7, -7
    made = quantize(product_of_rows(rows))
    node = next(node for node in made.graph.node if node.op_type == "MatMulIntegerToFloat")
    known = constants_of(made)
    levels, weights = evaluate(made, [list(range(ROWS))], node.input[0]), known[node.input[1]]
    assert levels.dtype == np.uint8
    assert (int(levels.max()), int(levels.min())) == (255, 1)
    assert 2 * 255 * np.abs(weights.astype(int)).max() < 2**15


def test_a_table_is_stored_once() -> None:
    made = quantize(product_of_rows(normal(ROWS, 32)))
    assert sum(values.nbytes for values in constants_of(made).values() if values.shape[:1] == (ROWS,)) == ROWS * (
        32 + 4
    )


def test_rows_that_something_else_reads_are_rounded_like_any_activation() -> None:
    model = parse(
        "x = Gather(rows, input_ids) y = MatMul(x, weight) out = Add(x, y)",
        "float[a, b, c] out",
        {"rows": normal(ROWS, 32), "weight": normal(32, 32, seed=1)},
    )
    made = quantize(model)
    assert kinds(made)["QuantizeLinear"] == 1
    assert error(model, made) < 0.02


def test_a_table_that_is_looked_up_twice_keeps_its_rows_once() -> None:
    model = parse(
        "x = Gather(rows, input_ids) y = MatMul(x, weight) z = Gather(rows, attention_mask) w = MatMul(z, weight)"
        " out = Add(w, y)",
        "float[a, b, c] out",
        {"rows": normal(ROWS, 32), "weight": normal(32, 32, seed=1)},
    )
    made = quantize(model)
    assert sum(values.shape == (ROWS, 32) for values in constants_of(made).values()) == 1
    assert error(model, made) < 0.02
