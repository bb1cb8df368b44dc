from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
import torch
from edgeembed_exporters import onnx_files, take_apart
from edgeembed_exporters.graph import build_graph, trace
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn

from ..graphs import Array, constants_of, evaluate, parse  # noqa: TID252  # the tests are no package

Floats = npt.NDArray[np.float32]

IDS = [list(range(20))]
TEXTS = [[1, 2, 3], [4, 5], [30, 31, 32]]

# Which input of a product is its level of zero.
_LEVELS_OF_ZERO = {"MatMulIntegerToFloat": 4, "QAttention": 6}

WORDS = [f"word{number}" for number in range(500)]


def normal(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def product_of(
    rows: Floats, weight: Floats, bias: Floats | None = None, *, before: str = "x = Identity(looked)"
) -> onnx.ModelProto:
    """A graph that looks rows up by input_ids and multiplies what `before` makes of them with a constant matrix.

    For `before` to normalise with there are `gain` and `offset`.
    """
    after = "out = Identity(y)" if bias is None else "out = Add(y, bias)"
    norm: dict[str, Array] = {"gain": 1 + normal(rows.shape[1], seed=3) / 4, "offset": normal(rows.shape[1], seed=4)}
    constants: dict[str, Array] = {"rows": rows, "weight": weight, **norm}
    if bias is not None:
        constants["bias"] = bias
    return parse(
        f"looked = Gather(rows, input_ids) {before} y = MatMul(x, weight) {after}", "float[a, b, c] out", constants
    )


def error(model: onnx.ModelProto, quantize: onnx.ModelProto) -> float:
    """The largest difference, relative to the largest value."""
    exact, given = evaluate(model, IDS), evaluate(quantize, IDS)
    return float(np.abs(exact - given).max() / np.abs(exact).max())


def products(model: onnx.ModelProto) -> list[tuple[str, Array, int]]:
    """The levels' name, the stored weights and the level of zero of each product."""
    known = constants_of(model)
    nodes = [node for node in model.graph.node if node.op_type in _LEVELS_OF_ZERO]
    places = [_LEVELS_OF_ZERO[node.op_type] for node in nodes]
    return [
        (node.input[0], known[node.input[1]], int(known[node.input[place]]))
        for node, place in zip(nodes, places, strict=True)
    ]


def assert_pairs_fit_16_bits(model: onnx.ModelProto, ids: Any) -> None:
    found = products(model)
    assert found
    for levels, weights, zero in found:
        given = evaluate(model, ids, levels)
        assert given.dtype == np.uint8
        assert weights.dtype == np.int8
        assert zero in {0, 20, 90, 128}
        assert np.abs(weights.astype(int)).max() == (64 if zero == 128 else 91)
        assert zero == 128 or given.max() == 180 or given.min() == 0  # the peak's
        assert 2 * int(given.max()) * np.abs(weights.astype(int)).max() < 2**15


def static_model() -> SentenceTransformer:
    """A large table and a product: all that precisions change, and traced in no time."""
    torch.manual_seed(5)
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(["[UNK]", *WORDS])}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    static = StaticEmbedding(tokenizer, embedding_weights=normal(len(WORDS) + 1, 128))
    modules = [static, Dense(128, 64, activation_function=nn.Tanh()), Normalize()]
    model: SentenceTransformer = SentenceTransformer(modules=modules, device="cpu").eval()
    return model


def texts(count: int) -> list[str]:
    draw = np.random.default_rng(count)
    return [" ".join(draw.choice(WORDS, size=draw.integers(3, 12))) for _ in range(count)]


@contextmanager
def traced_once(model: SentenceTransformer) -> Iterator[list[onnx.ModelProto]]:
    """Notes each time that a model is traced, which takes most of an export's time and is done but once here."""
    source = take_apart(model)
    traced, made = trace(build_graph(source), source.max_seq_length), []

    def trace_again(*_: object) -> onnx.ModelProto:
        made.append(traced)
        return traced

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(onnx_files._TRACERS, "torch", trace_again)
        yield made
