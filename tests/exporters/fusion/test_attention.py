from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from edgeembed_exporters.fusion.attention import fuse_attention

from ..graphs import op_counts, parse  # noqa: TID252  # tests are not a package
from .conftest import LIMIT, ROWS, assert_same_values, padded, run

WIDTH, HEADS, HEAD_WIDTH = 16, 2, 8
OUT = f"float[batch, tokens, {WIDTH}] out"
PADDING = """
    keep = Cast<to = 1>(attention_mask)
    padding = Sub(one, keep)
    penalty = Mul(padding, lowest)
    mask = Unsqueeze(penalty, axes_1_2)
"""
DISTANCES = """
    sizes = Shape(input_ids)
    length = Gather(sizes, length_index)
    positions = Range(zero, length, stride)
    columns = Unsqueeze(positions, axis_0)
    rows = Unsqueeze(positions, axis_1)
    offsets = Sub(columns, rows)
    distances = Abs(offsets)
    float_distances = Cast<to = 1>(distances)
"""
Q = "split_q = Reshape(queries, split) heads_q = Transpose<perm = [0, 2, 1, 3]>(split_q)"
K = "split_k = Reshape(keys, split) heads_k = Transpose<perm = [0, 2, 3, 1]>(split_k)"
LINES = {
    "x": "x = Gather(table, input_ids)",
    "queries": "queries = MatMul(x, to_queries)",
    "keys": "keys = MatMul(x, to_keys)",
    "values": "values = MatMul(x, to_values)",
    "q": "split_q = Reshape(queries, split) q = Transpose<perm = [0, 2, 1, 3]>(split_q)",
    "k": "split_k = Reshape(keys, split) k = Transpose<perm = [0, 2, 3, 1]>(split_k)",
    "v": "split_v = Reshape(values, split) v = Transpose<perm = [0, 2, 1, 3]>(split_v)",
    "mask": PADDING,
    "qk": "qk = MatMul(q, k)",
    "scores": "scores = Mul(qk, scale)",
    "masked": "masked = Add(scores, mask)",
    "weights": "weights = Softmax<axis = -1>(masked)",
    "context": "context = MatMul(weights, v)",
    "out": "joined = Transpose<perm = [0, 2, 1, 3]>(context) out = Reshape(joined, join)",
}
FUSED = {
    "as in BERT": {},
    "without a mask": {"mask": "", "masked": "", "weights": "weights = Softmax<axis = -1>(scores)"},
    "scores divided": {"scores": "scores = Div(qk, divisor)"},
    "queries and keys scaled, as in SDPA": {
        "q": f"{Q} q = Mul(heads_q, root_scale)",
        "k": f"{K} k = Mul(heads_k, root_scale)",
        "scores": "",
        "masked": "masked = Add(qk, mask)",
    },
    "queries scaled before they are split into heads": {
        "q": "scaled_queries = Div(queries, divisor) split_q = Reshape(scaled_queries, split)"
        " q = Transpose<perm = [0, 2, 1, 3]>(split_q)",
        "scores": "",
        "masked": "masked = Add(qk, mask)",
    },
    "linear layers with a bias": {
        "queries": "unbiased_q = MatMul(x, to_queries) queries = Add(unbiased_q, bias)",
        "keys": "unbiased_k = MatMul(x, to_keys) keys = Add(bias, unbiased_k)",
    },
    "mask plus scores": {"masked": "masked = Add(mask, scores)"},
    "a position bias": {
        "mask": PADDING + DISTANCES + "slope = Mul(float_distances, factor) position_bias = Unsqueeze(slope, axes_0_1)",
        "masked": "biased = Add(scores, position_bias) masked = Add(biased, mask)",
    },
    "a position bias for each head": {
        "mask": PADDING
        + DISTANCES
        + "four_dimensions = Unsqueeze(float_distances, axes_0_1) position_bias = Mul(four_dimensions, slopes)",
        "masked": "biased = Add(scores, position_bias) masked = Add(biased, mask)",
    },
    "two biases and a mask": {
        "mask": PADDING
        + DISTANCES
        + "four_dimensions = Unsqueeze(float_distances, axes_0_1) position_bias = Mul(four_dimensions, slopes)"
        " second_bias = Sin(position_bias)",
        "masked": "biased = Add(scores, position_bias) again = Add(second_bias, biased) masked = Add(again, mask)",
    },
    "masked scores overwritten, as in DistilBERT": {
        "mask": "is_equal = Equal(attention_mask, zero) padding = Unsqueeze(is_equal, axes_1_2)",
        "masked": "masked = Where(padding, lowest, scores)",
    },
}
NOT_FUSED = {
    "a softmax over queries": {"weights": "weights = Softmax<axis = 2>(masked)"},
    "attention weights with a second consumer": {
        "out": "joined = Transpose<perm = [0, 2, 1, 3]>(context) doubled = Add(weights, weights)"
        " other_context = MatMul(doubled, v) other_joined = Transpose<perm = [0, 2, 1, 3]>(other_context)"
        " sum = Add(joined, other_joined) out = Reshape(sum, join)"
    },
    "scaled values": {"context": "scaled = Mul(v, scale) context = MatMul(weights, scaled)"},
    "a negative scale": {"scores": "scores = Mul(qk, negative)"},
    "a scale for each head": {"scores": "scores = Mul(qk, slopes)"},
    "rotary queries": {"q": f"{Q} rotated = Sin(heads_q) q = Add(heads_q, rotated)"},
    "queries without a linear layer": {"queries": "queries = Tanh(x)"},
    "heads joined in another order": {
        "out": "joined = Transpose<perm = [0, 2, 3, 1]>(context) out = Reshape(joined, join)"
    },
    "queries split in another order": {
        "q": "split_q = Reshape(queries, other_split) q = Transpose<perm = [0, 3, 1, 2]>(split_q)"
    },
    "one key head for all query heads": {
        "keys": "keys = MatMul(x, to_few)",
        "k": "split_k = Reshape(keys, one_head) k = Transpose<perm = [0, 2, 3, 1]>(split_k)",
    },
    "a bias with three dimensions": {
        "mask": PADDING
        + DISTANCES
        + "three_dimensions = Unsqueeze(float_distances, axis_0) position_bias = Mul(three_dimensions, factor)",
        "masked": "biased = Add(scores, position_bias) masked = Add(biased, mask)",
    },
    "a mask that is not low enough": {"mask": PADDING.replace("lowest", "factor")},
    "a mask of queries instead of keys": {"mask": PADDING.replace("axes_1_2", "axes_1_3")},
}
OTHER_MASKS = {
    "a sliding window": {
        "mask": PADDING.replace("mask =", "all =")
        + DISTANCES
        + "is_beyond = Greater(distances, window) is_hidden = Cast<to = 1>(is_beyond)"
        " window_bias = Mul(is_hidden, lowest) four_dimensions = Unsqueeze(window_bias, axes_0_1)"
        " mask = Add(all, four_dimensions)"
    },
    "a causal mask": {
        "mask": PADDING.replace("mask =", "all =")
        + DISTANCES
        + "is_later = Greater(offsets, zero) is_hidden = Cast<to = 1>(is_later) window_bias = Mul(is_hidden, lowest)"
        " four_dimensions = Unsqueeze(window_bias, axes_0_1) mask = Add(all, four_dimensions)"
    },
    "all tokens of a batch in one row": {
        "x": "embedded = Gather(table, input_ids) x = Reshape(embedded, flat)"
        " shape = Shape(input_ids) unflat = Concat<axis = 0>(shape, width)",
        "q": "rows_q = Reshape(queries, unflat) split_q = Reshape(rows_q, split)"
        " q = Transpose<perm = [0, 2, 1, 3]>(split_q)",
        "k": "rows_k = Reshape(keys, unflat) split_k = Reshape(rows_k, split)"
        " k = Transpose<perm = [0, 2, 3, 1]>(split_k)",
        "v": "rows_v = Reshape(values, unflat) split_v = Reshape(rows_v, split)"
        " v = Transpose<perm = [0, 2, 1, 3]>(split_v)",
    },
}


def attention_model(changes: dict[str, str]) -> onnx.ModelProto:
    rng = np.random.default_rng(3)

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape, scale=shape[0] ** -0.5).astype(np.float32)

    floats = {"one": 1.0, "scale": 0.4, "divisor": 2.8, "root_scale": 0.6, "negative": -0.4}
    floats["lowest"] = float(np.finfo(np.float32).min)
    integers = {"zero": 0, "stride": 1, "window": 3}
    shapes = {"split": [0, 0, HEADS, HEAD_WIDTH], "other_split": [0, 0, HEAD_WIDTH, HEADS], "join": [0, 0, WIDTH]}
    shapes |= {"one_head": [0, 0, 1, HEAD_WIDTH], "flat": [-1, WIDTH], "width": [WIDTH]}
    axes = {"axes_1_2": [1, 2], "axes_1_3": [1, 3], "axis_0": [0], "axis_1": [1], "axes_0_1": [0, 1]}
    constants = {
        "table": normal(ROWS, WIDTH) * 5,
        **{name: normal(WIDTH, WIDTH) * 2 for name in ("to_queries", "to_keys", "to_values")},
        "to_few": normal(WIDTH, HEAD_WIDTH),
        "bias": normal(WIDTH),
        "factor": np.float32(-0.3),
        "slopes": np.array([[[-0.3]], [[0.2]]], dtype=np.float32),
        "length_index": np.array(1, dtype=np.int64),
        **{name: np.array(value, dtype=np.float32) for name, value in floats.items()},
        **{name: np.array(value, dtype=np.int64) for name, value in {**integers, **shapes, **axes}.items()},
    }
    lines = " ".join({**LINES, **changes}.values())
    read = set(re.findall(r"\w+(?=[,)])", lines))
    return parse(lines, OUT, {name: values for name, values in constants.items() if name in read})


def fuse(model: onnx.ModelProto) -> onnx.ModelProto:
    fused = onnx.ModelProto()
    fused.CopyFrom(model)
    fuse_attention(fused, LIMIT)
    return fused


@pytest.mark.parametrize("changes", FUSED.values(), ids=FUSED)
def test_attention_is_fused_into_one_node_with_the_same_values(changes: dict[str, str]) -> None:
    model = attention_model(changes)
    fused = fuse(model)
    assert (op_counts(fused)["MultiHeadAttention"], op_counts(fused)["Softmax"]) == (1, 0)
    assert_same_values(model, fused)


@pytest.mark.parametrize("changes", NOT_FUSED.values(), ids=NOT_FUSED)
def test_unsupported_attention_is_not_changed(changes: dict[str, str]) -> None:
    model = attention_model(changes)
    fused = fuse(model)
    assert list(fused.graph.node) == list(model.graph.node)
    assert_same_values(model, fused)


@pytest.mark.parametrize("changes", OTHER_MASKS.values(), ids=OTHER_MASKS)
def test_attention_with_other_masks_keeps_its_values(changes: dict[str, str]) -> None:
    model = attention_model(changes)
    assert_same_values(model, fuse(model))


def test_a_mask_that_depends_on_ids_is_not_taken_for_a_padding_mask() -> None:
    by_ids = "is_equal = Equal(input_ids, zero) is_zero = Cast<to = 1>(is_equal) penalty = Mul(is_zero, lowest)"
    model = attention_model({"mask": f"{by_ids} mask = Unsqueeze(penalty, axes_1_2)"})
    ids, mask = padded(3, 9)
    ids[0, 4] = 0
    np.testing.assert_allclose(run(fuse(model), ids, mask), run(model, ids, mask), atol=1e-5)
