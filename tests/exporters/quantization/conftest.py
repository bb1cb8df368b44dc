from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
import torch
from edgeembed_exporters import exporting, inspect_model
from edgeembed_exporters.onnx.tracing import build_graph, trace
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn

from ..graphs import Array, evaluate, initializers, parse  # noqa: TID252  # tests are not a package

Floats = npt.NDArray[np.float32]

IDS = [list(range(20))]
TEXTS = [[1, 2, 3], [4, 5], [30, 31, 32]]

# The position of the zero point among the inputs of each int8 matmul.
_ZERO_POINT_INPUTS = {"MatMulIntegerToFloat": 4, "QAttention": 6}

WORDS = [f"word{number}" for number in range(500)]


def normal(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def linear_model(
    rows: Floats, weight: Floats, bias: Floats | None = None, *, before: str = "x = Identity(embedded)"
) -> onnx.ModelProto:
    """Return a model that embeds input_ids, applies the statements `before`, and multiplies by a constant weight.

    `before` reads `embedded`, writes `x`, and may use the layer norm parameters `gain` and `offset`.
    """
    after = "out = Identity(y)" if bias is None else "out = Add(y, bias)"
    norm: dict[str, Array] = {"gain": 1 + normal(rows.shape[1], seed=3) / 4, "offset": normal(rows.shape[1], seed=4)}
    constants: dict[str, Array] = {"rows": rows, "weight": weight, **norm}
    if bias is not None:
        constants["bias"] = bias
    return parse(
        f"embedded = Gather(rows, input_ids) {before} y = MatMul(x, weight) {after}", "float[a, b, c] out", constants
    )


def error(model: onnx.ModelProto, quantized: onnx.ModelProto) -> float:
    """Return the largest difference of the outputs, relative to the largest output."""
    exact, actual = evaluate(model, IDS), evaluate(quantized, IDS)
    return float(np.abs(exact - actual).max() / np.abs(exact).max())


def int8_matmuls(model: onnx.ModelProto) -> list[tuple[str, Array, int]]:
    """Return the name of the activation, the weight and the zero point of each int8 matmul."""
    stored = initializers(model)
    nodes = [node for node in model.graph.node if node.op_type in _ZERO_POINT_INPUTS]
    positions = [_ZERO_POINT_INPUTS[node.op_type] for node in nodes]
    return [
        (node.input[0], stored[node.input[1]], int(stored[node.input[position]]))
        for node, position in zip(nodes, positions, strict=True)
    ]


def assert_no_saturation(model: onnx.ModelProto, ids: Any) -> None:
    found = int8_matmuls(model)
    assert found
    for activation, weights, zero_point in found:
        values = evaluate(model, ids, activation)
        assert values.dtype == np.uint8
        assert weights.dtype == np.int8
        assert zero_point in {0, 28, 128}
        assert largest_pair_sum(weights) * int(values.max()) < 2**15


def largest_pair_sum(weights: Array) -> int:
    """Return the largest magnitude that two weights of adjacent channels, or one, add up to without canceling out."""
    pairs = np.pad(weights.astype(int), [(0, len(weights) % 2), (0, 0)]).reshape(-1, 2, weights.shape[1])
    return int(max(np.maximum(sign * pairs, 0).sum(axis=1).max() for sign in (1, -1)))


def static_model() -> SentenceTransformer:
    """Return a model with a large embedding table and a linear layer, which is traced quickly."""
    torch.manual_seed(5)
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(["[UNK]", *WORDS])}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    static = StaticEmbedding(tokenizer, embedding_weights=normal(len(WORDS) + 1, 128))
    modules = [static, Dense(128, 64, activation_function=nn.Tanh()), Normalize()]
    model: SentenceTransformer = SentenceTransformer(modules=modules, device="cpu").eval()
    return model


def texts(count: int) -> list[str]:
    rng = np.random.default_rng(count)
    return [" ".join(rng.choice(WORDS, size=rng.integers(3, 12))) for _ in range(count)]


@contextmanager
def traced_once(model: SentenceTransformer) -> Iterator[list[onnx.ModelProto]]:
    """Trace a model once for several exports; yields a list with one entry for each time that an export traces it."""
    source = inspect_model(model)
    traced, calls = trace(build_graph(source), source.max_seq_length), []

    def reuse_trace(*_: object) -> onnx.ModelProto:
        calls.append(traced)
        return traced

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(exporting.TRACERS, "torch", reuse_trace)
        yield calls
