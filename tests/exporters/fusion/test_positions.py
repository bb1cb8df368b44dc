from __future__ import annotations

import numpy as np
import onnx
import pytest
from edgeembed_exporters.fusion.positions import fuse_positions

from ..graphs import Array, initializers, op_counts, parse  # noqa: TID252  # tests are not a package
from .conftest import LIMIT, ROWS, assert_same_values

WIDTH = 8
POSITION_IDS = "length = Shape<start = 1, end = 2>(input_ids) ids = Slice(arange, zero, length, one, one)"
SUMS = {
    "tokens plus positions": "out = Add(x, embedded)",
    "positions plus tokens": "out = Add(embedded, x)",
    "a constant row": "with_row = Add(x, row) out = Add(with_row, embedded)",
    "two constant rows": "with_row = Add(row, x) with_rows = Add(with_row, vector) out = Add(with_rows, embedded)",
}
NOT_FUSED = {
    "positions that start at 1": f"{POSITION_IDS.replace('zero', 'one')} embedded = Gather(positions, ids)"
    " out = Add(x, embedded)",
    "positions in descending order": f"{POSITION_IDS.replace('arange', 'reversed')} embedded = Gather(positions, ids)"
    " out = Add(x, embedded)",
    "positions that depend on the input": "embedded = Gather(positions, attention_mask) out = Add(x, embedded)",
    "multiplied instead of added": f"{POSITION_IDS} embedded = Gather(positions, ids) out = Mul(x, embedded)",
    "a second consumer": f"{POSITION_IDS} embedded = Gather(positions, ids) once = Add(x, embedded)"
    " out = Add(once, embedded)",
}


def embedding_model(statements: str) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    arange = np.arange(LIMIT + 5)[None]
    constants: dict[str, Array] = {
        "table": rng.normal(size=(ROWS, WIDTH)).astype(np.float32),
        "positions": rng.normal(size=(LIMIT + 2, WIDTH)).astype(np.float32),
        "row": rng.normal(size=(1, 1, WIDTH)).astype(np.float32),
        "vector": rng.normal(size=WIDTH).astype(np.float32),
        "arange": arange,
        "reversed": arange[:, LIMIT::-1].copy(),
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
def test_positions_and_constant_rows_become_one_slice_of_a_table(sums: str) -> None:
    model = embedding_model(f"{POSITION_IDS} embedded = Gather(positions, ids) {sums}")
    fused = fuse(model)
    assert op_counts(fused) == {"Gather": 1, "Shape": 1, "Slice": 1, "Add": 1}
    assert "row" not in initializers(fused)
    assert_same_values(model, fused)


@pytest.mark.parametrize("statements", NOT_FUSED.values(), ids=NOT_FUSED)
def test_other_positions_are_not_changed(statements: str) -> None:
    model = embedding_model(statements)
    assert op_counts(fuse(model)) == op_counts(model)


def test_constant_rows_are_kept_if_another_node_reads_the_sum() -> None:
    model = embedding_model(
        f"{POSITION_IDS} embedded = Gather(positions, ids) with_row = Add(x, row)"
        " y = Add(with_row, embedded) out = Add(y, with_row)"
    )
    fused = fuse(model)
    assert (op_counts(fused)["Add"], op_counts(fused)["Gather"]) == (3, 1)
    assert_same_values(model, fused)
