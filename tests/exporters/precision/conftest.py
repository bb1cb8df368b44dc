from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn

from ..graphs import evaluate, parse  # noqa: TID252  # the tests are no package

Floats = npt.NDArray[np.float32]

IDS = [list(range(20))]
TEXTS = [[1, 2, 3], [4, 5], [30, 31, 32]]

WORDS = [f"word{number}" for number in range(500)]


def normal(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def product_of(
    rows: Floats, weight: Floats, bias: Floats | None = None, *, before: str = "x = Identity(looked)"
) -> onnx.ModelProto:
    """A graph that looks rows up by input_ids and multiplies what `before` makes of them with a constant matrix."""
    after = "out = Identity(y)" if bias is None else "out = Add(y, bias)"
    constants = {"rows": rows, "weight": weight} | ({} if bias is None else {"bias": bias})
    return parse(
        f"looked = Gather(rows, input_ids) {before} y = MatMul(x, weight) {after}", "float[a, b, c] out", constants
    )


def error(model: onnx.ModelProto, quantised: onnx.ModelProto) -> float:
    """The largest difference, relative to the largest value."""
    exact, given = evaluate(model, IDS), evaluate(quantised, IDS)
    return float(np.abs(exact - given).max() / np.abs(exact).max())


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
