from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.precision.residual import move_biases

from ..graphs import Array, evaluate, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import IDS, normal

BLOCK = (
    "rows = Gather(table, input_ids) norm = LayerNormalization<axis = -1>(rows, gain, offset)"
    " product = Mul(rows, rows) biased = Add(product, bias) {sum} out = Tanh(sum)"
)


def block(sum_: str, **constants: Array) -> onnx.ModelProto:
    known = {"table": normal(30, 8), "gain": normal(8, seed=1), "offset": normal(8, seed=2), "bias": normal(8, seed=3)}
    return parse(BLOCK.format(sum=sum_), "float[a, b, c] out", known | constants)


@pytest.mark.parametrize("sum_", ["sum = Add(norm, biased)", "sum = Add(biased, norm)"])
def test_a_normalisation_adds_the_bias_of_what_is_added_to_it(sum_: str) -> None:
    model = block(sum_)
    before = evaluate(model, IDS)
    move_biases(model)
    onnx.checker.check_model(model, full_check=True)
    assert kinds(model)["Add"] == 1
    np.testing.assert_allclose(evaluate(model, IDS), before, atol=1e-6)


@pytest.mark.parametrize(
    "sum_",
    [
        "first = Add(norm, biased) sum = Mul(first, norm)",  # another reader of the normalisation
        "first = Add(norm, biased) sum = Mul(first, biased)",
        "first = Add(norm, biased) sum = Mul(first, product)",
        "sum = Mul(norm, biased)",
        "sum = Add(biased, biased)",
        "sum = Add(rows, biased)",
    ],
)
def test_where_anything_else_would_notice_the_bias_stays(sum_: str) -> None:
    model = block(sum_)
    before, adds = evaluate(model, IDS), kinds(model)["Add"]
    move_biases(model)
    assert kinds(model)["Add"] == adds
    np.testing.assert_array_equal(evaluate(model, IDS), before)


@pytest.mark.parametrize("name", ["norm", "biased", "product"])
def test_what_is_an_output_of_the_graph_stays(name: str) -> None:
    model = block("sum = Add(norm, biased)")
    model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    before = evaluate(model, IDS, name)
    move_biases(model)
    np.testing.assert_array_equal(evaluate(model, IDS, name), before)


def test_a_bias_that_is_a_single_number_stays() -> None:
    model = block("sum = Add(norm, biased)", bias=normal(1))
    before = model.SerializeToString(deterministic=True)
    move_biases(model)
    assert model.SerializeToString(deterministic=True) == before
