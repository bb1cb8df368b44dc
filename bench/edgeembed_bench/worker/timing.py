"""Timing of a subject's calls within the worker process."""

from __future__ import annotations

import time
from typing import Any


def time_encoding(subject: Any, items: list[Any]) -> dict[str, Any]:
    """Return the wall time of encoding each item, and the CPU time of all of them, in nanoseconds."""
    return _time_calls(subject.encode, items)


def time_empty_calls(count: int) -> dict[str, Any]:
    """Return the times of empty calls, measured like encoding: the overhead of the measurement."""
    return _time_calls(_do_nothing, [""] * count)


def time_model(subject: Any, items: list[Any]) -> list[int] | None:
    """Return the time of the model without tokenization for each item, in nanoseconds; None if impossible."""
    if subject.run is None:
        return None
    return [_time_ns(subject.run, subject.tokenize(item)) for item in items]


def time_parts(subject: Any, items: list[Any]) -> dict[str, list[int]]:
    """Return the times of each part of encoding each item, in nanoseconds; the order of the parts alternates."""
    times: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        calls = _part_calls(subject, item)
        for _, call in calls:  # warms the caches equally for all parts
            call()
        for part, call in calls if number % 2 else reversed(calls):
            start = time.perf_counter_ns()
            call()
            times.setdefault(part, []).append(time.perf_counter_ns() - start)
    return times


def encode_for(subject: Any, texts: list[str], seconds: float) -> int:
    """Encode texts one by one, in a cycle, for at least `seconds`; return the number of encoded texts."""
    import itertools

    count, end = 0, time.perf_counter() + seconds
    cycle = itertools.cycle(texts)
    while time.perf_counter() < end:
        subject.encode(next(cycle))
        count += 1
    return count


def _part_calls(subject: Any, item: Any) -> list[Any]:
    """Return the callable parts: "encode", "tokenize", "run" (the model on token ids) and "bare" (tokenize and run)."""
    if subject.tokenize is None:
        return []
    calls = [("encode", lambda: subject.encode(item)), ("tokenize", lambda: subject.tokenize(item))]
    if subject.run is not None:
        prepared = subject.tokenize(item)
        calls.append(("run", lambda: subject.run(prepared)))
        calls.append(("bare", lambda: subject.run(subject.tokenize(item))))
    return calls


def _time_calls(call: Any, items: list[Any]) -> dict[str, Any]:
    cpu_ns = time.process_time_ns()
    times_ns = [_time_ns(call, item) for item in items]
    return {"times_ns": times_ns, "cpu_ns": time.process_time_ns() - cpu_ns}


def _time_ns(call: Any, item: Any) -> int:
    start = time.perf_counter_ns()
    call(item)
    return time.perf_counter_ns() - start


def _do_nothing(_item: Any) -> None:
    return None
