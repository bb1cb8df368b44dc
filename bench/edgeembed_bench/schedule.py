"""Interleaved timing: callables take turns on the same inputs, so that a drift of the machine affects all equally."""

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

Input = TypeVar("Input")

_MAX_SETTLING_CALLS = 10


@dataclass(frozen=True)
class Samples:
    """Times of one callable.

    Attributes:
        timed_ms: Time of each input, in the order measured.
        warmup_ms: Time of each warm-up call, including the warm-up calls at the start of each turn.
    """

    timed_ms: tuple[float, ...]
    warmup_ms: tuple[float, ...]

    def quantile_ms(self, q: float) -> float:
        """Return the q-th quantile of the timed calls in milliseconds, for q between 0 and 1."""
        return float(np.quantile(self.timed_ms, q))


def time_interleaved(
    callables: Mapping[str, Callable[[Input], Any]],
    inputs: Sequence[Input],
    *,
    warmup: int,
    block: int,
    seed: int,
    advance: Callable[[int], None] = lambda _: None,
) -> dict[str, Samples]:
    """Time every callable on every input, in short turns; the order is shuffled for each round of turns.

    Args:
        callables: The callables to time, by name.
        inputs: Passed to each callable once, in this order.
        warmup: Warm-up calls of each callable before the first turn.
        block: Inputs per turn. Each turn begins with one warm-up call, because the caches still hold the data of
            the previous callable.
        seed: Seed of the order of turns.
        advance: Called after each turn with its number of timed calls.

    Returns:
        The times of each callable, by name.
    """
    timers = {name: functools.partial(_times_ms, call) for name, call in callables.items()}
    return interleave_blocks(timers, inputs, warmup=warmup, block=block, seed=seed, advance=advance)


def interleave_blocks(
    timers: Mapping[str, Callable[[Sequence[Input]], Sequence[float]]],
    inputs: Sequence[Input],
    *,
    warmup: int,
    block: int,
    seed: int,
    settle_ms: float = 0.0,
    advance: Callable[[int], None] = lambda _: None,
) -> dict[str, Samples]:
    """Interleave timers, which are callables that time several inputs themselves, for example in another process.

    Args:
        timers: Callables that process the inputs one by one and return the time of each in milliseconds, by name.
        inputs: Passed to each timer once, in this order.
        warmup: Warm-up inputs of each timer before the first turn.
        block: Inputs per turn.
        seed: Seed of the order of turns.
        settle_ms: Approximate duration of the warm-up calls at the start of each turn; at least one call, at most ten.
            Short calls need up to ten calls to reach full speed; for long calls one is enough.
        advance: Called after each turn with its number of timed calls.

    Returns:
        The times of each timer, by name.
    """
    timed: dict[str, list[float]] = {name: [] for name in timers}
    early = list(itertools.islice(itertools.cycle(inputs), warmup))
    discarded = {name: list(timer(early)) for name, timer in timers.items()}
    settling = {name: _settling_calls(settle_ms, times) for name, times in discarded.items()}
    starts = range(0, len(inputs), block)
    for start, names in zip(starts, shuffled_orders(timers, len(starts), seed), strict=True):
        turn = inputs[start : start + block]
        for name in names:
            before = [inputs[place % len(inputs)] for place in range(start - settling[name], start)]
            times = timers[name]([*before, *turn])
            discarded[name].extend(times[: len(before)])
            timed[name].extend(times[len(before) :])
            advance(len(turn))
    return {name: Samples(tuple(timed[name]), tuple(discarded[name])) for name in timers}


def shuffled_orders(names: Iterable[str], rounds: int, seed: int) -> Iterator[list[str]]:
    """Yield the names in a new random order for each round.

    Args:
        names: The names.
        rounds: Number of orders.
        seed: Seed of the random numbers.

    Yields:
        All names, in random order.
    """
    random = np.random.default_rng(seed)
    listed = list(names)
    for _ in range(rounds):
        yield [listed[index] for index in random.permutation(len(listed))]


def _settling_calls(settle_ms: float, early_ms: Sequence[float]) -> int:
    if not settle_ms or not early_ms:
        return 1
    return max(1, min(_MAX_SETTLING_CALLS, math.ceil(settle_ms / float(np.median(early_ms)))))


def _times_ms(call: Callable[[Input], Any], items: Sequence[Input]) -> list[float]:
    return [_time_ms(call, item) for item in items]


def _time_ms(call: Callable[[Input], Any], item: Input) -> float:
    start = time.perf_counter_ns()
    call(item)
    return (time.perf_counter_ns() - start) / 1e6
