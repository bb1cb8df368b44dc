from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.precision.blocks import round_rows
from edgeembed_exporters.precision.tables import tables_in_int4, tables_in_int8

from ..graphs import Array, constants_of, evaluate, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import Floats, normal

ROWS = 300
EVERY_ROW = [list(range(ROWS))]
both = pytest.mark.parametrize("quantise", [tables_in_int8, tables_in_int4])


def look_up(table: Floats, statements: str = "out = Gather(table, input_ids)", **constants: Array) -> onnx.ModelProto:
    return parse(statements, "float[a, b, c] out", {"table": table, **constants})


def sizes(model: onnx.ModelProto) -> int:
    return sum(values.nbytes for values in constants_of(model).values())


def test_a_row_in_int8_errs_by_half_a_step_of_its_own() -> None:
    table = normal(ROWS, 64) * np.logspace(-3, 3, ROWS, dtype=np.float32)[:, None]
    table[5] = 0
    model = look_up(table)
    tables_in_int8(model)
    onnx.checker.check_model(model, full_check=True)
    assert sizes(model) == ROWS * (64 + 4)
    given = evaluate(model, EVERY_ROW)[0]
    assert (np.abs(given - table) <= np.abs(table).max(axis=1, keepdims=True) / 254 * 1.001).all()


@pytest.mark.parametrize(("largest", "bytes_a_scale"), [(1.0, 2), (1e-4, 4), (1e8, 4)], ids=["usual", "tiny", "huge"])
def test_scales_of_very_many_rows_are_halved_where_that_changes_nothing(largest: float, bytes_a_scale: int) -> None:
    table = np.random.default_rng(0).uniform(0.1, 1, (65_536, 2)).astype(np.float32)
    table[7] *= np.float32(largest) / np.abs(table[7]).max()
    model = look_up(table)
    tables_in_int8(model)
    onnx.checker.check_model(model, full_check=True)
    assert sizes(model) == len(table) * (2 + bytes_a_scale)
    given = evaluate(model, [list(range(100))])[0]
    assert (np.abs(given - table[:100]) <= np.abs(table[:100]).max(axis=1, keepdims=True) / 254 * 1.2).all()


@pytest.mark.parametrize("width", [64, 96, 130, 384])
def test_a_row_in_int4_is_what_its_blocks_say(width: int) -> None:
    table = normal(ROWS, width)
    table[5] = 0
    model = look_up(table)
    tables_in_int4(model)
    onnx.checker.check_model(model)
    assert kinds(model)["GatherBlockQuantized"] == 1
    assert sizes(model) == ROWS * (width // 2 + 2 * -(-width // 64))
    expected = round_rows(table, 64, 4).values()[:, :width]
    np.testing.assert_allclose(evaluate(model, EVERY_ROW)[0], expected, rtol=2e-3)  # scales have half precision


def test_odd_rows_keep_8_bits_at_int4() -> None:
    model = look_up(normal(ROWS, 65))
    tables_in_int4(model)
    assert kinds(model) == {"Gather": 2, "Cast": 1, "Mul": 1}
    assert sizes(model) == ROWS * (65 + 4)


@both
def test_small_tables_stay(quantise: object) -> None:
    model = look_up(normal(32, 64))
    before = model.SerializeToString(deterministic=True)
    quantise(model)  # type: ignore[operator]
    assert model.SerializeToString(deterministic=True) == before


@both
def test_a_table_that_is_read_twice_is_stored_once(quantise: object) -> None:
    table = normal(ROWS, 64)
    twice = look_up(table, "x = Gather(table, input_ids) y = Gather(table, attention_mask) out = Add(x, y)")
    once = look_up(table)
    quantise(twice)  # type: ignore[operator]
    quantise(once)  # type: ignore[operator]
    assert sizes(twice) == sizes(once)


@both
def test_a_table_whose_columns_are_looked_up_stays(quantise: object) -> None:
    model = look_up(normal(64, ROWS), "out = Gather<axis = 1>(table, input_ids)")
    before = evaluate(model, EVERY_ROW)
    quantise(model)  # type: ignore[operator]
    np.testing.assert_array_equal(evaluate(model, EVERY_ROW), before)


@both
def test_the_first_rows_of_a_table_have_a_scale_a_column(quantise: object) -> None:
    table = normal(ROWS, 64) * np.logspace(-3, 3, 64, dtype=np.float32)
    table[:, 7] = 0
    constants = {"first": np.array([0]), "along": np.array([0])}
    model = look_up(
        table, "many = Shape<start = 1, end = 2>(input_ids) out = Slice(table, first, many, along)", **constants
    )
    quantise(model)  # type: ignore[operator]
    onnx.checker.check_model(model)
    assert sizes(model) < ROWS * 64 + 64 * 4 + 100
    error = np.abs(evaluate(model, EVERY_ROW) - table).max(axis=0)
    assert (error <= np.abs(table).max(axis=0) / 254 * 1.001).all()
