from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.fusion.positions import fuse_positions

from ..graphs import Array, constants_of, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import LIMIT, ROWS, assert_same_values

WIDTH = 8
COUNTED = "length = Shape<start = 1, end = 2>(input_ids) ids = Slice(numbers, zero, length, one, one)"
SUMS = {
    "positions alone": "out = Add(x, place)",
    "positions first": "out = Add(place, x)",
    "a row for every token": "typed = Add(x, row) out = Add(typed, place)",
    "two rows": "typed = Add(row, x) more = Add(typed, flat) out = Add(more, place)",
}
STAYS = {
    "positions that begin later": f"{COUNTED.replace('zero', 'one')} place = Gather(places, ids) out = Add(x, place)",
    "numbers in another order": f"{COUNTED.replace('numbers', 'reversed')} place = Gather(places, ids)"
    " out = Add(x, place)",
    "positions that depend on the text": "place = Gather(places, attention_mask) out = Add(x, place)",
    "what is multiplied with": f"{COUNTED} place = Gather(places, ids) out = Mul(x, place)",
    "what something else reads": f"{COUNTED} place = Gather(places, ids) once = Add(x, place) out = Add(once, place)",
}


def embedding(statements: str) -> onnx.ModelProto:
    draw = np.random.default_rng(0)
    numbers = np.arange(LIMIT + 5)[None]
    constants: dict[str, Array] = {
        "table": draw.normal(size=(ROWS, WIDTH)).astype(np.float32),
        "places": draw.normal(size=(LIMIT + 2, WIDTH)).astype(np.float32),
        "row": draw.normal(size=(1, 1, WIDTH)).astype(np.float32),
        "flat": draw.normal(size=WIDTH).astype(np.float32),
        "numbers": numbers,
        "reversed": numbers[:, LIMIT::-1].copy(),
        "zero": np.array([0]),
        "one": np.array([1]),
    }
    return parse(f"x = Gather(table, input_ids) {statements}", f"float[batch, tokens, {WIDTH}] out", constants)


def fuse(model: onnx.ModelProto) -> onnx.ModelProto:
    fused = onnx.ModelProto()
    fused.CopyFrom(model)
    fuse_positions(fused)
    return fused


@pytest.mark.parametrize("sums", SUMS.values(), ids=SUMS)
def test_positions_and_what_is_added_to_every_token_are_one_piece_of_a_table(sums: str) -> None:
    model = embedding(f"{COUNTED} place = Gather(places, ids) {sums}")
    fused = fuse(model)
    assert kinds(fused) == {"Gather": 1, "Shape": 1, "Slice": 1, "Add": 1}
    assert "row" not in constants_of(fused)
    assert_same_values(model, fused)


@pytest.mark.parametrize("statements", STAYS.values(), ids=STAYS)
def test_other_positions_stay(statements: str) -> None:
    model = embedding(statements)
    assert kinds(fuse(model)) == kinds(model)


def test_what_is_added_stays_where_others_read_the_sum() -> None:
    model = embedding(
        f"{COUNTED} place = Gather(places, ids) typed = Add(x, row) y = Add(typed, place) out = Add(y, typed)"
    )
    fused = fuse(model)
    assert (kinds(fused)["Add"], kinds(fused)["Gather"]) == (3, 1)
    assert_same_values(model, fused)
