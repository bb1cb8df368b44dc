from functools import partial
from typing import Any

import pytest
from edgeembed_bench.schedule import Samples, interleave_blocks, time_interleaved


def _logged(names: str, inputs: list[int], **options: Any) -> tuple[list[tuple[str, int]], dict[str, Samples]]:
    calls: list[tuple[str, int]] = []
    callables = {name: lambda item, name=name: calls.append((name, item)) for name in names}
    samples = time_interleaved(callables, inputs, **{"warmup": 0, "block": 2, "seed": 0, **options})
    return calls, samples


def test_each_callable_is_timed_once_per_input() -> None:
    _, samples = _logged("ab", [1, 2, 3, 4, 5])
    assert {name: len(each.timed_ms) for name, each in samples.items()} == {"a": 5, "b": 5}


def test_warmup_calls_are_separate_and_each_turn_has_one() -> None:
    _, samples = _logged("a", [1, 2, 3, 4, 5], warmup=7)
    assert len(samples["a"].warmup_ms) == 7 + 3


def test_turns_alternate_between_callables_and_use_the_same_inputs() -> None:
    calls, _ = _logged("ab", list(range(40)), block=10)
    rounds = [calls[start : start + 22] for start in range(0, len(calls), 22)]
    for number, turns in enumerate(rounds):
        counted = {name: [item for who, item in turns if who == name][1:] for name in "ab"}
        assert counted["a"] == counted["b"] == list(range(10 * number, 10 * number + 10))


def test_order_of_turns_changes_with_rounds_and_repeats_with_the_seed() -> None:
    first, _ = _logged("ab", list(range(40)))
    again, _ = _logged("ab", list(range(40)))
    leaders = {first[start][0] for start in range(0, len(first), 6)}
    assert first == again
    assert leaders == {"a", "b"}


def test_slow_callable_has_longer_times(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0]

    def slow(_: Any) -> None:
        now[0] += 3_000_000

    def fast(_: Any) -> None:
        now[0] += 1_000_000

    monkeypatch.setattr("time.perf_counter_ns", lambda: now[0])
    samples = time_interleaved({"slow": slow, "fast": fast}, ["x"] * 4, warmup=1, block=2, seed=0)
    assert samples["slow"].timed_ms == (3.0,) * 4
    assert samples["fast"].quantile_ms(0.5) == pytest.approx(1.0)


def test_short_calls_get_more_settling_calls_than_long_ones() -> None:
    calls: dict[str, list[list[int]]] = {"short": [], "long": []}

    def timer(name: str, each_ms: float, items: list[int]) -> list[float]:
        calls[name].append(list(items))
        return [each_ms] * len(items)

    timers = {name: partial(timer, name, each_ms) for name, each_ms in (("short", 2.5), ("long", 100.0))}
    samples = interleave_blocks(timers, [1, 2, 3, 4, 5, 6], warmup=2, block=3, seed=0, settle_ms=10)
    assert calls["short"] == [[1, 2], [3, 4, 5, 6, 1, 2, 3], [6, 1, 2, 3, 4, 5, 6]]
    assert calls["long"] == [[1, 2], [6, 1, 2, 3], [3, 4, 5, 6]]
    assert [len(samples[name].timed_ms) for name in timers] == [6, 6]
    assert [len(samples[name].warmup_ms) for name in timers] == [2 + 2 * 4, 2 + 2]


def test_settling_calls_are_limited_to_ten() -> None:
    timers = {"a": lambda items: [1e-6] * len(items)}
    assert len(interleave_blocks(timers, [1], warmup=1, block=1, seed=0, settle_ms=10)["a"].warmup_ms) == 1 + 10


def test_advance_is_called_for_all_timed_calls() -> None:
    done: list[int] = []
    _logged("ab", [1, 2, 3], advance=done.append)
    assert sum(done) == 6
