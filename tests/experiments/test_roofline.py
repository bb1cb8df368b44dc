"""The operations of the built-in encoders, as experiments/roofline.py counts them."""

from pathlib import Path

import onnx
import pytest
from edgeembed_runtime import Encoder

from experiments.roofline import count_work


@pytest.mark.parametrize(
    ("name", "layers", "width", "inner", "token_dim"), [("mini", 2, 384, 512, 160), ("nano", 1, 256, 384, 96)]
)
@pytest.mark.parametrize("tokens", [1, 10])
def test_multiply_adds_follow_from_the_shape(
    name: str, layers: int, width: int, inner: int, token_dim: int, tokens: int
) -> None:
    bundle = Encoder(name).bundle
    work = count_work(onnx.load(str(Path(str(bundle.path)) / bundle.model_file)), tokens)
    weights = layers * (4 * width**2 + 2 * width * inner) + token_dim * width
    assert work.weight_bytes == weights
    assert work.multiply_adds == tokens * weights + layers * 2 * tokens**2 * width
