from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from edgeembed_exporters.onnx.graph import contrib_node
from edgeembed_exporters.quantization.blockwise import (
    QuantizedBlocks,
    dequantize_blocks,
    find_scales,
    quantize_blocks,
    quantize_rows,
)
from onnx import helper, numpy_helper

from .conftest import Floats, normal

both_bits = pytest.mark.parametrize("bits", [4, 8])
SHAPES = [(3, 16, 16), (5, 33, 16), (2, 40, 32), (4, 7, 16)]


def dequantize_bytes(blocks: QuantizedBlocks, columns: int) -> Floats:
    """Dequantize the packed bytes value by value."""
    packed, values = blocks.packed(), np.zeros((len(blocks.quantized), columns), dtype=np.float32)
    _, _, block_size = blocks.quantized.shape
    for row, column in itertools.product(range(len(values)), range(columns)):
        position = column % block_size
        if blocks.bits == 8:
            value = int(packed[row, column // block_size, position])
        else:
            byte = int(packed[row, column // block_size, position // 2])
            value = byte // 16 if position % 2 else byte % 16
        values[row, column] = (value - (8 if blocks.bits == 4 else 128)) * blocks.scales[row, column // block_size]
    return values


def ort_matmul(blocks: QuantizedBlocks, channels: int, activation: Floats) -> Floats:
    inputs: dict[str, npt.NDArray[Any]] = {"weight": blocks.packed(), "scales": blocks.scales}
    attributes = {
        "K": channels,
        "N": len(blocks.quantized),
        "bits": blocks.bits,
        "block_size": blocks.quantized.shape[2],
    }
    node = contrib_node("MatMulNBits", ["x", *inputs], "y", **attributes)
    floats = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, None]) for name in "xy"]
    constants = [numpy_helper.from_array(values, name) for name, values in inputs.items()]
    graph = helper.make_graph([node], "g", floats[:1], floats[1:], constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    result: Floats = session.run(None, {"x": activation})[0]
    return result


@both_bits
@pytest.mark.parametrize(("rows", "columns", "block_size"), SHAPES)
def test_packed_bytes_match_a_simple_dequantization(rows: int, columns: int, block_size: int, bits: int) -> None:
    blocks = quantize_rows(normal(rows, columns), block_size, bits)
    np.testing.assert_array_equal(blocks.dequantized()[:, :columns], dequantize_bytes(blocks, columns))


@both_bits
@pytest.mark.parametrize(("rows", "columns", "block_size"), SHAPES)
def test_onnxruntime_dequantizes_the_same_values(rows: int, columns: int, block_size: int, bits: int) -> None:
    blocks, activation = quantize_rows(normal(rows, columns), block_size, bits), normal(6, columns, seed=1)
    expected = activation @ blocks.dequantized()[:, :columns].T
    np.testing.assert_allclose(ort_matmul(blocks, columns, activation), expected, atol=1e-5)


@both_bits
def test_values_on_a_grid_are_exact(bits: int) -> None:
    zero_point = 2 ** (bits - 1)
    integers = np.random.default_rng(0).integers(-zero_point, zero_point, (4, 3, 16))
    integers[..., 0] = -zero_point  # the lowest value, in every block_size
    values = (integers * np.array([0.5, -0.25, 3.0])[:, None]).astype(np.float32)
    np.testing.assert_array_equal(
        dequantize_blocks(quantize_blocks(values, find_scales(values, bits), bits), find_scales(values, bits), bits),
        values,
    )


@both_bits
def test_scales_are_nearly_optimal(bits: int) -> None:
    values = normal(40, 32)
    values[::2] **= 3  # some with a long tail
    found = find_scales(values, bits)

    def loss(scales: Floats) -> Floats:
        error = dequantize_blocks(quantize_blocks(values, scales, bits), scales, bits) - values
        return np.asarray((error**2).sum(axis=-1))

    simple = np.abs(values).max(axis=-1) / 2 ** (bits - 1)
    losses = [loss(np.float32(sign * ratio) * simple) for ratio in np.linspace(0.4, 1.2, 161) for sign in (1, -1)]
    assert (loss(found) <= loss(simple)).all()
    assert loss(found).sum() < 1.2 * np.min(losses, axis=0).sum()


@both_bits
def test_zeros_are_exact(bits: int) -> None:
    blocks = quantize_rows(np.zeros((2, 20), dtype=np.float32), 16, bits)
    assert np.isfinite(blocks.scales).all()
    assert not blocks.dequantized().any()


def test_blocks_are_independent() -> None:
    one, other = normal(1, 32), normal(1, 32)
    other[0, 16:] *= 1000
    np.testing.assert_array_equal(
        quantize_rows(one, 16, 4).quantized[0, 0], quantize_rows(other, 16, 4).quantized[0, 0]
    )
