from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from edgeembed_exporters.editing import contrib_node
from edgeembed_exporters.precision.blocks import Blocks, block_scales, dequantise, quantise, round_rows
from onnx import helper, numpy_helper

from .conftest import Floats, normal

every_width = pytest.mark.parametrize("bits", [4, 8])
SHAPES = [(3, 16, 16), (5, 33, 16), (2, 40, 32), (4, 7, 16)]


def slow_values(blocks: Blocks, columns: int) -> Floats:
    """What the packed bytes stand for, number by number."""
    packed, values = blocks.packed(), np.zeros((len(blocks.levels), columns), dtype=np.float32)
    _, _, block = blocks.levels.shape
    for row, column in itertools.product(range(len(values)), range(columns)):
        place = column % block
        if blocks.bits == 8:
            level = int(packed[row, column // block, place])
        else:
            byte = int(packed[row, column // block, place // 2])
            level = byte // 16 if place % 2 else byte % 16
        values[row, column] = (level - (8 if blocks.bits == 4 else 128)) * blocks.scales[row, column // block]
    return values


def ort_product(blocks: Blocks, channels: int, given: Floats) -> Floats:
    inputs: dict[str, npt.NDArray[Any]] = {"levels": blocks.packed(), "scales": blocks.scales}
    choices = {"K": channels, "N": len(blocks.levels), "bits": blocks.bits, "block_size": blocks.levels.shape[2]}
    node = contrib_node("MatMulNBits", ["x", *inputs], "y", **choices)
    floats = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, None]) for name in "xy"]
    constants = [numpy_helper.from_array(values, name) for name, values in inputs.items()]
    graph = helper.make_graph([node], "g", floats[:1], floats[1:], constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    made: Floats = session.run(None, {"x": given})[0]
    return made


@every_width
@pytest.mark.parametrize(("rows", "columns", "block"), SHAPES)
def test_bytes_say_what_a_slow_reading_of_them_says(rows: int, columns: int, block: int, bits: int) -> None:
    blocks = round_rows(normal(rows, columns), block, bits)
    np.testing.assert_array_equal(blocks.values()[:, :columns], slow_values(blocks, columns))


@every_width
@pytest.mark.parametrize(("rows", "columns", "block"), SHAPES)
def test_onnxruntime_reads_the_same_numbers(rows: int, columns: int, block: int, bits: int) -> None:
    blocks, given = round_rows(normal(rows, columns), block, bits), normal(6, columns, seed=1)
    expected = given @ blocks.values()[:, :columns].T
    np.testing.assert_allclose(ort_product(blocks, columns, given), expected, atol=1e-5)


@every_width
def test_numbers_on_a_grid_are_kept(bits: int) -> None:
    middle = 2 ** (bits - 1)
    levels = np.random.default_rng(0).integers(-middle, middle, (4, 3, 16))
    levels[..., 0] = -middle  # the outermost level, in every block
    values = (levels * np.array([0.5, -0.25, 3.0])[:, None]).astype(np.float32)
    np.testing.assert_array_equal(
        dequantise(quantise(values, block_scales(values, bits), bits), block_scales(values, bits), bits), values
    )


@every_width
def test_a_scale_is_as_good_as_any(bits: int) -> None:
    values = normal(40, 32)
    values[::2] **= 3  # some with a long tail
    found = block_scales(values, bits)

    def loss(scales: Floats) -> Floats:
        change = dequantise(quantise(values, scales, bits), scales, bits) - values
        return np.asarray((change**2).sum(axis=-1))

    outermost = np.abs(values).max(axis=-1) / 2 ** (bits - 1)
    every = [loss(np.float32(sign * share) * outermost) for share in np.linspace(0.4, 1.2, 161) for sign in (1, -1)]
    assert (loss(found) <= loss(outermost)).all()
    assert loss(found).sum() < 1.2 * np.min(every, axis=0).sum()


@every_width
def test_zeros_stay_zeros(bits: int) -> None:
    blocks = round_rows(np.zeros((2, 20), dtype=np.float32), 16, bits)
    assert np.isfinite(blocks.scales).all()
    assert not blocks.values().any()


def test_a_block_depends_on_no_other() -> None:
    one, other = normal(1, 32), normal(1, 32)
    other[0, 16:] *= 1000
    np.testing.assert_array_equal(round_rows(one, 16, 4).levels[0, 0], round_rows(other, 16, 4).levels[0, 0])
