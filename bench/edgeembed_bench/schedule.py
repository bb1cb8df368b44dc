"""Time several callables on the same inputs, turn by turn, so that a drift of the machine hits all alike."""

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

Input = TypeVar("Input")

_MOST_SETTLING = 10


@dataclass(frozen=True)
class Samples:
    """Raw times of one callable.

    Attributes:
        timed_ms: One time per input, in the order measured.
        warmup_ms: Times of the calls that do not count: the first ones, and those that begin each turn.
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
    """Do as `interleaved`, with timers that may sit in other processes.

    Args:
        timers: By name, what runs several inputs one by one and gives the time of each in milliseconds.
        inputs: As for `interleaved`, as are the others.
        warmup: Inputs before the first counted one.
        block: Inputs a turn.
        seed: Decides the order of turns.
        settle_ms: About how long each turn goes on before calls count; at least for one call, at most for ten. A short
            call takes up to ten until it is as quick as it gets, a long one hardly notices who came before.
        advance: Told how many counted calls were made.

    Returns:
        The raw times of each.
    """
    timed: dict[str, list[float]] = {name: [] for name in timers}
    early = list(itertools.islice(itertools.cycle(inputs), warmup))
    apart = {name: list(timer(early)) for name, timer in timers.items()}
    settle = {name: _calls(settle_ms, times) for name, times in apart.items()}
    starts = range(0, len(inputs), block)
    for start, names in zip(starts, shuffled(timers, len(starts), seed), strict=True):
        turn = inputs[start : start + block]
        for name in names:
            before = [inputs[place % len(inputs)] for place in range(start - settle[name], start)]
            times = timers[name]([*before, *turn])
            apart[name].extend(times[: len(before)])
            timed[name].extend(times[len(before) :])
            advance(len(turn))
    return {name: Samples(tuple(timed[name]), tuple(apart[name])) for name in timers}


def _calls(settle_ms: float, early_ms: Sequence[float]) -> int:
    if not settle_ms or not early_ms:
        return 1
    return max(1, min(_MOST_SETTLING, math.ceil(settle_ms / float(np.median(early_ms)))))


def shuffled(names: Iterable[str], rounds: int, seed: int) -> Iterator[list[str]]:
    """Give the names in a new order for each round.

    Args:
        names: What takes turns.
        rounds: How many rounds there are.
        seed: Decides the orders.
    """
    random = np.random.default_rng(seed)
    listed = list(names)
    for _ in range(rounds):
        yield [listed[index] for index in random.permutation(len(listed))]


def _times_ms(call: Callable[[Input], Any], items: Sequence[Input]) -> list[float]:
    return [_time_ms(call, item) for item in items]


def _time_ms(call: Callable[[Input], Any], item: Input) -> float:
    start = time.perf_counter_ns()
    call(item)
    return (time.perf_counter_ns() - start) / 1e6
