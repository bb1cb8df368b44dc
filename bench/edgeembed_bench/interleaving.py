"""Time several callables on the same inputs, turn by turn, so that a drift of the machine hits all alike."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

Input = TypeVar("Input")


@dataclass(frozen=True)
class Samples:
    """Raw times of one callable.

    Attributes:
        timed_ms: One time per input, in the order measured.
        warmup_ms: Times of the calls that do not count: the first ones, and the first of each turn.
    """

    timed_ms: tuple[float, ...]
    warmup_ms: tuple[float, ...]

    def quantile_ms(self, share: float) -> float:
        """Give the time that `share` (0 to 1) of the counted calls stay below."""
        return float(np.quantile(self.timed_ms, share))


def interleaved(
    callables: Mapping[str, Callable[[Input], Any]],
    inputs: Sequence[Input],
    *,
    warmup: int,
    block: int,
    seed: int,
    advance: Callable[[int], None] = lambda _: None,
) -> dict[str, Samples]:
    """Time every callable on every input, in short blocks whose order is shuffled anew each round.

    Args:
        callables: What to time, by name.
        inputs: Given to each callable once, in this order.
        warmup: Calls of each callable before the first counted one.
        block: Inputs a turn. Each turn begins with one call that does not count, because the caches still
            hold the data of whoever came before.
        seed: Decides the order of turns.
        advance: Told how many counted calls were made, outside the timed regions.

    Returns:
        The raw times of each callable.
    """
    random = np.random.default_rng(seed)
    names = list(callables)
    timed: dict[str, list[float]] = {name: [] for name in names}
    early = list(itertools.islice(itertools.cycle(inputs), warmup))
    apart = {name: [_time_ms(call, item) for item in early] for name, call in callables.items()}
    for start in range(0, len(inputs), block):
        turn = inputs[start : start + block]
        for index in random.permutation(len(names)):
            name = names[index]
            apart[name].append(_time_ms(callables[name], inputs[start - 1]))
            timed[name].extend(_time_ms(callables[name], item) for item in turn)
            advance(len(turn))
    return {name: Samples(tuple(timed[name]), tuple(apart[name])) for name in names}


def _time_ms(call: Callable[[Input], Any], item: Input) -> float:
    start = time.perf_counter_ns()
    call(item)
    return (time.perf_counter_ns() - start) / 1e6
