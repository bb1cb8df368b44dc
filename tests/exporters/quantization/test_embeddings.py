from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from edgeembed_exporters.quantization.blockwise import quantize_rows
from edgeembed_exporters.quantization.embeddings import quantize_embeddings_int4, quantize_embeddings_int8

from ..graphs import Array, evaluate, initializers, op_counts, parse  # noqa: TID252  # tests are not a package
from .conftest import Floats, normal

Quantizer = Callable[[onnx.ModelProto], None]

ROWS = 300
ALL_ROWS = [list(range(ROWS))]
both = pytest.mark.parametrize("quantize", [quantize_embeddings_int8, quantize_embeddings_int4])


def lookup_model(
    table: Floats, statements: str = "out = Gather(table, input_ids)", **constants: Array
) -> onnx.ModelProto:
    return parse(statements, "float[a, b, c] out", {"table": table, **constants})


def initializer_bytes(model: onnx.ModelProto) -> int:
    return sum(values.nbytes for values in initializers(model).values())


def test_the_int8_error_is_at_most_half_a_quantization_step_of_the_row() -> None:
    table = normal(ROWS, 64) * np.logspace(-3, 3, ROWS, dtype=np.float32)[:, None]
    table[5] = 0
    model = lookup_model(table)
    quantize_embeddings_int8(model)
    onnx.checker.check_model(model, full_check=True)
    assert initializer_bytes(model) == ROWS * (64 + 4)
    actual = evaluate(model, ALL_ROWS)[0]
    assert (np.abs(actual - table) <= np.abs(table).max(axis=1, keepdims=True) / 254 * 1.001).all()


@pytest.mark.parametrize(("largest", "bytes_per_scale"), [(1.0, 2), (1e-4, 4), (1e8, 4)], ids=["usual", "tiny", "huge"])
def test_scales_of_many_rows_are_float16_unless_precision_is_lost(largest: float, bytes_per_scale: int) -> None:
    table = np.random.default_rng(0).uniform(0.1, 1, (65_536, 2)).astype(np.float32)
    table[7] *= np.float32(largest) / np.abs(table[7]).max()
    model = lookup_model(table)
    quantize_embeddings_int8(model)
    onnx.checker.check_model(model, full_check=True)
    assert initializer_bytes(model) == len(table) * (2 + bytes_per_scale)
    actual = evaluate(model, [list(range(100))])[0]
    assert (np.abs(actual - table[:100]) <= np.abs(table[:100]).max(axis=1, keepdims=True) / 254 * 1.2).all()


@pytest.mark.parametrize("width", [64, 96, 130, 384])
def test_int4_rows_match_blockwise_quantization(width: int) -> None:
    table = normal(ROWS, width)
    table[5] = 0
    model = lookup_model(table)
    quantize_embeddings_int4(model)
    onnx.checker.check_model(model)
    assert op_counts(model)["GatherBlockQuantized"] == 1
    assert initializer_bytes(model) == ROWS * (width // 2 + 2 * -(-width // 64))
    expected = quantize_rows(table, 64, 4).dequantized()[:, :width]
    np.testing.assert_allclose(evaluate(model, ALL_ROWS)[0], expected, rtol=2e-3)  # scales are float16


@both
@pytest.mark.parametrize("width", [64, 96, 384])
def test_rows_of_16_levels_are_stored_in_4_bits_without_error(width: int, quantize: Quantizer) -> None:
    levels = np.random.default_rng(0).integers(-8, 8, (ROWS, width)).astype(np.float32)
    levels[:, 0] = -8
    table = levels * normal(ROWS, 1)
    table[5] = 0
    model = lookup_model(table)
    quantize(model)
    assert op_counts(model) == {"GatherBlockQuantized": 1}
    assert initializer_bytes(model) == ROWS * (width // 2 + 4)
    np.testing.assert_allclose(evaluate(model, ALL_ROWS)[0], table, rtol=1e-5, atol=1e-6)


def test_a_table_with_one_row_of_more_levels_has_8_bits_at_int8() -> None:
    table = np.random.default_rng(0).integers(-8, 8, (ROWS, 64)).astype(np.float32)
    table[:, 0] = -8
    table[7] = normal(1, 64)
    model = lookup_model(table)
    quantize_embeddings_int8(model)
    assert op_counts(model) == {"Gather": 2, "Cast": 1, "Mul": 1}


def test_rows_of_odd_width_are_int8_at_int4() -> None:
    model = lookup_model(normal(ROWS, 65))
    quantize_embeddings_int4(model)
    assert op_counts(model) == {"Gather": 2, "Cast": 1, "Mul": 1}
    assert initializer_bytes(model) == ROWS * (65 + 4)


@both
def test_small_tables_are_not_quantized(quantize: Quantizer) -> None:
    model = lookup_model(normal(32, 64))
    before = model.SerializeToString(deterministic=True)
    quantize(model)
    assert model.SerializeToString(deterministic=True) == before


@both
def test_a_table_with_two_lookups_is_stored_once(quantize: Quantizer) -> None:
    table = normal(ROWS, 64)
    twice = lookup_model(table, "x = Gather(table, input_ids) y = Gather(table, attention_mask) out = Add(x, y)")
    once = lookup_model(table)
    quantize(twice)
    quantize(once)
    assert initializer_bytes(twice) == initializer_bytes(once)


@both
def test_a_table_with_a_column_lookup_is_not_quantized(quantize: Quantizer) -> None:
    model = lookup_model(normal(64, ROWS), "out = Gather<axis = 1>(table, input_ids)")
    before = evaluate(model, ALL_ROWS)
    quantize(model)
    np.testing.assert_array_equal(evaluate(model, ALL_ROWS), before)


@both
def test_sliced_tables_have_column_scales(quantize: Quantizer) -> None:
    table = normal(ROWS, 64) * np.logspace(-3, 3, 64, dtype=np.float32)
    table[:, 7] = 0
    constants = {"start": np.array([0]), "axis": np.array([0])}
    model = lookup_model(
        table, "length = Shape<start = 1, end = 2>(input_ids) out = Slice(table, start, length, axis)", **constants
    )
    quantize(model)
    onnx.checker.check_model(model)
    assert initializer_bytes(model) < ROWS * 64 + 64 * 4 + 100
    error = np.abs(evaluate(model, ALL_ROWS) - table).max(axis=0)
    assert (error <= np.abs(table).max(axis=0) / 254 * 1.001).all()
