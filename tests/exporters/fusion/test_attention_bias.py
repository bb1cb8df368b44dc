from __future__ import annotations

import numpy as np
import pytest
from edgeembed_exporters.fusion.attention_bias import AttentionBiases

from ..graphs import parse  # noqa: TID252  # tests are not a package

TOKENS = 6
KEEP = "keep = Cast<to = 9>(attention_mask)"
PADDING = f"{KEEP} penalty = Where(keep, zero, lowest)"
KEYS = f"{PADDING} bias = Unsqueeze(penalty, axes_1_2)"
QUERIES = f"{PADDING} bias = Unsqueeze(penalty, axes_1_3)"
PAIRS = (
    f"{PADDING} queries = Unsqueeze(penalty, axes_1_3) keys = Unsqueeze(penalty, axes_1_2) bias = Add(queries, keys)"
)
REVERSED = f"{KEEP} reversed = Where(keep, lowest, zero) bias = Unsqueeze(reversed, axes_1_2)"
THREE_DIMENSIONS = f"{PADDING} bias = Unsqueeze(penalty, axis_1)"


def biases_of(statements: str, lowest: float = -1e30, tokens: int = TOKENS) -> AttentionBiases:
    floats = {"zero": 0, "lowest": lowest}
    axes = {"axis_1": [1], "axes_1_2": [1, 2], "axes_1_3": [1, 3]}
    constants = {name: np.array(value, dtype=np.float32) for name, value in floats.items()}
    constants |= {name: np.array(value, dtype=np.int64) for name, value in axes.items() if name in statements}
    rank = ", ".join("abcd"[: 3 if statements is THREE_DIMENSIONS else 4])
    return AttentionBiases(parse(statements, f"float[{rank}] bias", constants), ["bias"], tokens)


@pytest.mark.parametrize("lowest", [-1e4, -3.4e38, -np.inf])
def test_a_bias_that_hides_padding_alone_is_a_padding_mask(lowest: float) -> None:
    found = biases_of(KEYS, lowest)
    assert found.is_padding_mask("bias")
    assert found.are_supported(["bias"])


@pytest.mark.parametrize("lowest", [-9e3, -0.5, 1e30])
def test_a_bias_that_does_not_hide_padding_is_not_supported(lowest: float) -> None:
    assert not biases_of(KEYS, lowest).are_supported(["bias"])


@pytest.mark.parametrize("statements", [QUERIES, REVERSED, THREE_DIMENSIONS])
def test_a_bias_that_hides_other_tokens_is_not_supported(statements: str) -> None:
    assert not biases_of(statements).are_supported(["bias"])


def test_a_bias_of_token_pairs_is_supported_but_is_no_padding_mask() -> None:
    found = biases_of(PAIRS)
    assert not found.is_padding_mask("bias")
    assert found.are_supported(["bias"])


def test_a_limit_of_one_token_works() -> None:
    assert biases_of(KEYS, tokens=1).are_supported(["bias"])


def test_without_biases_the_graph_is_not_run() -> None:
    assert AttentionBiases(parse("out = Nothing(input_ids)", "float[a] out", {}), [], TOKENS).are_supported([])
