from __future__ import annotations

import numpy as np
import pytest
from edgeembed_exporters.fusion.masks import Masks

from ..graphs import parse  # noqa: TID252  # the tests are no package

TOKENS = 6
SEEN = "seen = Cast<to = 9>(attention_mask)"
PADDING = f"{SEEN} far = Where(seen, zero, lowest)"
ROW = f"{PADDING} bias = Unsqueeze(far, middle)"
QUERIES = f"{PADDING} bias = Unsqueeze(far, one_and_last)"
BOTH = f"{PADDING} down = Unsqueeze(far, one_and_last) across = Unsqueeze(far, middle) bias = Add(down, across)"
REVERSED = f"{SEEN} near = Where(seen, lowest, zero) bias = Unsqueeze(near, middle)"
PLANE = f"{PADDING} bias = Unsqueeze(far, front)"


def masks(statements: str, lowest: float = -1e30, tokens: int = TOKENS) -> Masks:
    floats = {"zero": 0, "lowest": lowest}
    axes = {"front": [1], "middle": [1, 2], "one_and_last": [1, 3]}
    constants = {name: np.array(value, dtype=np.float32) for name, value in floats.items()}
    constants |= {name: np.array(value, dtype=np.int64) for name, value in axes.items() if name in statements}
    rank = ", ".join("abcd"[: 3 if statements is PLANE else 4])
    return Masks(parse(statements, f"float[{rank}] bias", constants), ["bias"], tokens)


@pytest.mark.parametrize("lowest", [-1e4, -3.4e38, -np.inf])
def test_what_hides_the_padding_and_nothing_else_is_padding(lowest: float) -> None:
    found = masks(ROW, lowest)
    assert found.is_padding("bias")
    assert found.are_known(["bias"])


@pytest.mark.parametrize("lowest", [-9e3, -0.5, 1e30])
def test_what_leaves_something_of_the_padding_is_unknown(lowest: float) -> None:
    assert not masks(ROW, lowest).are_known(["bias"])


@pytest.mark.parametrize("statements", [QUERIES, REVERSED, PLANE])
def test_what_hides_something_else_is_unknown(statements: str) -> None:
    assert not masks(statements).are_known(["bias"])


def test_what_hides_pairs_of_tokens_is_a_bias() -> None:
    found = masks(BOTH)
    assert not found.is_padding("bias")
    assert found.are_known(["bias"])


def test_a_model_of_one_token_can_be_asked() -> None:
    assert masks(ROW, tokens=1).are_known(["bias"])


def test_without_biases_nothing_is_run() -> None:
    assert Masks(parse("out = Nothing(input_ids)", "float[a] out", {}), [], TOKENS).are_known([])
