from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from edgeembed_exporters.fusion.attention import fuse_attention

from ..graphs import kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import LIMIT, ROWS, assert_same_values, padded, run

WIDTH, HEADS, HEAD_WIDTH = 16, 2, 8
OUT = f"float[batch, tokens, {WIDTH}] out"
PADDING = """
    seen = Cast<to = 1>(attention_mask)
    hidden = Sub(one, seen)
    far = Mul(hidden, lowest)
    mask = Unsqueeze(far, middle)
"""
DISTANCES = """
    sizes = Shape(input_ids)
    length = Gather(sizes, last)
    places = Range(first, length, step)
    across = Unsqueeze(places, front)
    down = Unsqueeze(places, back)
    apart = Sub(across, down)
    away = Abs(apart)
    near = Cast<to = 1>(away)
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
    "products": "products = MatMul(q, k)",
    "scores": "scores = Mul(products, scale)",
    "masked": "masked = Add(scores, mask)",
    "shares": "shares = Softmax<axis = -1>(masked)",
    "mixed": "mixed = MatMul(shares, v)",
    "out": "joined = Transpose<perm = [0, 2, 1, 3]>(mixed) out = Reshape(joined, join)",
}
FUSED = {
    "as BERT has it": {},
    "without a mask": {"mask": "", "masked": "", "shares": "shares = Softmax<axis = -1>(scores)"},
    "a quotient": {"scores": "scores = Div(products, root)"},
    "queries and keys scaled, as by sdpa": {
        "q": f"{Q} q = Mul(heads_q, some)",
        "k": f"{K} k = Mul(heads_k, some)",
        "scores": "",
        "masked": "masked = Add(products, mask)",
    },
    "queries scaled before they are split": {
        "q": "small = Div(queries, root) split_q = Reshape(small, split) q = Transpose<perm = [0, 2, 1, 3]>(split_q)",
        "scores": "",
        "masked": "masked = Add(products, mask)",
    },
    "layers with a bias": {
        "queries": "plain_q = MatMul(x, to_queries) queries = Add(plain_q, bias)",
        "keys": "plain_k = MatMul(x, to_keys) keys = Add(bias, plain_k)",
    },
    "the mask first": {"masked": "masked = Add(mask, scores)"},
    "a bias of positions": {
        "mask": PADDING + DISTANCES + "slope = Mul(near, less) bend = Unsqueeze(slope, ends)",
        "masked": "bent = Add(scores, bend) masked = Add(bent, mask)",
    },
    "a bias of positions for each head": {
        "mask": PADDING + DISTANCES + "square = Unsqueeze(near, ends) bend = Mul(square, slopes)",
        "masked": "bent = Add(scores, bend) masked = Add(bent, mask)",
    },
    "two biases and a mask": {
        "mask": PADDING + DISTANCES + "square = Unsqueeze(near, ends) bend = Mul(square, slopes) more = Sin(bend)",
        "masked": "bent = Add(scores, bend) twice = Add(more, bent) masked = Add(twice, mask)",
    },
    "hidden scores overwritten, as by DistilBERT": {
        "mask": "none = Equal(attention_mask, first) hidden = Unsqueeze(none, middle)",
        "masked": "masked = Where(hidden, lowest, scores)",
    },
}
STAYS = {
    "a softmax over queries": {"shares": "shares = Softmax<axis = 2>(masked)"},
    "a softmax whose shares are read by others": {
        "out": "joined = Transpose<perm = [0, 2, 1, 3]>(mixed) doubled = Add(shares, shares)"
        " own = MatMul(doubled, v) both = Transpose<perm = [0, 2, 1, 3]>(own) sum = Add(joined, both)"
        " out = Reshape(sum, join)"
    },
    "scaled values": {"mixed": "scaled = Mul(v, scale) mixed = MatMul(shares, scaled)"},
    "a negative scale": {"scores": "scores = Mul(products, minus)"},
    "a scale for each head": {"scores": "scores = Mul(products, slopes)"},
    "rotated queries": {"q": f"{Q} turned = Sin(heads_q) q = Add(heads_q, turned)"},
    "queries that are no layer's": {"queries": "queries = Tanh(x)"},
    "heads that are joined in another order": {
        "out": "joined = Transpose<perm = [0, 2, 3, 1]>(mixed) out = Reshape(joined, join)"
    },
    "queries split in another order": {
        "q": "split_q = Reshape(queries, other_split) q = Transpose<perm = [0, 3, 1, 2]>(split_q)"
    },
    "keys of one head for all": {
        "keys": "keys = MatMul(x, to_few)",
        "k": "split_k = Reshape(keys, one_head) k = Transpose<perm = [0, 2, 3, 1]>(split_k)",
    },
    "a bias of three dimensions": {
        "mask": PADDING + DISTANCES + "plane = Unsqueeze(near, front) bend = Mul(plane, less)",
        "masked": "bent = Add(scores, bend) masked = Add(bent, mask)",
    },
    "a soft mask": {"mask": PADDING.replace("lowest", "less")},
    "a mask of queries": {"mask": PADDING.replace("middle", "one_and_last")},
}
NOT_PLAIN = {
    "a window": {
        "mask": PADDING.replace("mask =", "all =")
        + DISTANCES
        + "beyond = Greater(away, window) out_of = Cast<to = 1>(beyond) far_off = Mul(out_of, lowest)"
        " square = Unsqueeze(far_off, ends) mask = Add(all, square)"
    },
    "only what comes before": {
        "mask": PADDING.replace("mask =", "all =")
        + DISTANCES
        + "later = Greater(apart, first) out_of = Cast<to = 1>(later) far_off = Mul(out_of, lowest)"
        " square = Unsqueeze(far_off, ends) mask = Add(all, square)"
    },
    "tokens of all texts in one row": {
        "x": "found = Gather(table, input_ids) x = Reshape(found, flat)"
        " shape = Shape(input_ids) unflat = Concat<axis = 0>(shape, width)",
        "q": "rows_q = Reshape(queries, unflat) split_q = Reshape(rows_q, split)"
        " q = Transpose<perm = [0, 2, 1, 3]>(split_q)",
        "k": "rows_k = Reshape(keys, unflat) split_k = Reshape(rows_k, split)"
        " k = Transpose<perm = [0, 2, 3, 1]>(split_k)",
        "v": "rows_v = Reshape(values, unflat) split_v = Reshape(rows_v, split)"
        " v = Transpose<perm = [0, 2, 1, 3]>(split_v)",
    },
}


def attention(changes: dict[str, str]) -> onnx.ModelProto:
    draw = np.random.default_rng(3)

    def some(*shape: int) -> Any:
        return draw.normal(size=shape, scale=shape[0] ** -0.5).astype(np.float32)

    floats = {"one": 1.0, "lowest": np.finfo(np.float32).min, "scale": 0.4, "root": 2.8, "some": 0.6, "minus": -0.4}
    integers = {"first": 0, "step": 1, "window": 3}
    shapes = {"split": [0, 0, HEADS, HEAD_WIDTH], "other_split": [0, 0, HEAD_WIDTH, HEADS], "join": [0, 0, WIDTH]}
    shapes |= {"one_head": [0, 0, 1, HEAD_WIDTH], "flat": [-1, WIDTH], "width": [WIDTH]}
    axes = {"middle": [1, 2], "one_and_last": [1, 3], "front": [0], "back": [1], "ends": [0, 1]}
    constants = {
        "table": some(ROWS, WIDTH) * 5,
        **{name: some(WIDTH, WIDTH) * 2 for name in ("to_queries", "to_keys", "to_values")},
        "to_few": some(WIDTH, HEAD_WIDTH),
        "bias": some(WIDTH),
        "less": np.float32(-0.3),
        "slopes": np.array([[[-0.3]], [[0.2]]], dtype=np.float32),
        "last": np.array(1, dtype=np.int64),
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
def test_an_attention_becomes_one_node_of_the_same_values(changes: dict[str, str]) -> None:
    model = attention(changes)
    fused = fuse(model)
    assert (kinds(fused)["MultiHeadAttention"], kinds(fused)["Softmax"]) == (1, 0)
    assert_same_values(model, fused)


@pytest.mark.parametrize("changes", STAYS.values(), ids=STAYS)
def test_what_is_no_such_attention_stays(changes: dict[str, str]) -> None:
    model = attention(changes)
    fused = fuse(model)
    assert list(fused.graph.node) == list(model.graph.node)
    assert_same_values(model, fused)


@pytest.mark.parametrize("changes", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_an_attention_that_is_not_plain_keeps_its_values(changes: dict[str, str]) -> None:
    model = attention(changes)
    assert_same_values(model, fuse(model))


def test_ids_that_are_hidden_are_not_taken_for_the_padding() -> None:
    by_ids = "none = Equal(input_ids, first) gone = Cast<to = 1>(none) far = Mul(gone, lowest)"
    model = attention({"mask": f"{by_ids} mask = Unsqueeze(far, middle)"})
    ids, mask = padded(3, 9)
    ids[0, 4] = 0
    np.testing.assert_allclose(run(fuse(model), ids, mask), run(model, ids, mask), atol=1e-5)
