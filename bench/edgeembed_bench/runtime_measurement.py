"""The runtime's benchmark: subjects and texts in, a report out. Everything on one core, one subject at a time."""

import contextlib
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from edgeembed_runtime.errors import InputError

from edgeembed_bench.machine import this_machine
from edgeembed_bench.progress import progress_bar
from edgeembed_bench.runtime_report import RuntimeReport, RuntimeSettings, SubjectRun
from edgeembed_bench.schedule import Samples, interleave_blocks, shuffled
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import Start, Worker, pinned_to_cores, started

BLOCK = 20  # texts a turn: short against the drift of a machine, long against the cost of changing turns
WARMUP = 50
# Two processes of one program differ for good, by where their memory lies: an interval is one over processes.
PROCESSES = 10
PASSES = 3  # an overhead of microseconds hides in the scatter of a millisecond; its median needs some thousand texts

ModelInfo = dict[str, Any]
Parts = dict[str, tuple[float, ...]]


def measure_runtime(
    subjects: Sequence[Subject],
    texts: Sequence[str],
    *,
    texts_from: str,
    held_to_targets: Sequence[str] = (),
    left_out: Mapping[str, str] | None = None,
    rounds: int = 50,
    starts: int = 11,
    seed: int = 0,
) -> RuntimeReport:
    """Measure what subjects cost, each in fresh processes of its own, turn by turn.

    Args:
        subjects: The floor, which encodes nothing, then the baseline, then the others.
        texts: Real sentences; repeated in order where there are too few.
        texts_from: Where they come from.
        held_to_targets: Names of the subjects that the targets are for.
        left_out: Why a subject is absent, by its name.
        rounds: Turns of each subject, shared out among ten processes (fewer than ten turns: a process each) and
            rounded up so that all have as many.
        starts: Fresh processes of each subject for cold start and memory; an odd number has a median that was measured.
        seed: Decides the order of turns.

    Returns:
        The report, raw samples included.

    Raises:
        InputError: If there are no texts, or no rounds or starts.
        CheckError: If a subject does not start, ends early, or gives no answer in time.
    """
    if not texts or rounds < 1 or starts < 1:
        raise InputError(f"{len(texts)} texts, {rounds} rounds, {starts} starts given; expected at least 1 of each")
    floor, *encoders = subjects
    load_average = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    bundles = sum(each.adapter == "bundle" for each in encoders)
    processes = min(PROCESSES, rounds)
    rounds = processes * -(-rounds // processes)
    steps = (starts + 1) * len(subjects) + rounds * BLOCK * (len(encoders) + PASSES * bundles)
    with pinned_to_cores() as cores, progress_bar(steps) as advance:
        begun, facts = _starts(subjects, texts[0], starts + 1, seed, advance)
        timed = list(itertools.islice(itertools.cycle(texts), rounds * BLOCK))
        share = len(timed) // processes
        found = [
            _process(encoders, timed[number * share : (number + 1) * share], seed + number, advance)
            for number in range(processes)
        ]
    measured = {each.name: [process[each.name] for process in found if each.name in process] for each in subjects}
    runs = tuple(
        SubjectRun(
            subject=each,
            facts=facts[each.name],
            starts=tuple(begun[each.name][1:]),
            discarded_start=begun[each.name][0],
            latency=tuple(process.latency for process in measured[each.name]),
            parts_us=tuple(process.parts_us for process in measured[each.name] if process.parts_us),
            resident_bytes=tuple(
                process.resident_bytes for process in measured[each.name] if process.resident_bytes is not None
            ),
        )
        for each in subjects
    )
    characters = float(np.mean([len(text) for text in texts]))
    plan = RuntimeSettings(rounds, processes, BLOCK, WARMUP, starts, PASSES, seed, texts_from, len(texts), characters)
    settings = replace(plan, core=cores[0] if cores else None, load_average=load_average)
    created_utc = datetime.now(UTC).isoformat(timespec="seconds")
    names = (encoders[0].name, floor.name, tuple(held_to_targets))
    return RuntimeReport(created_utc, this_machine(), settings, *names, runs, dict(left_out or {}))


def _starts(
    subjects: Sequence[Subject], text: str, rounds: int, seed: int, advance: Callable[[int], None]
) -> tuple[dict[str, list[Start]], dict[str, ModelInfo]]:
    """Start every subject afresh, round by round, and end it before the next."""
    named = {subject.name: subject for subject in subjects}
    begun: dict[str, list[Start]] = {name: [] for name in named}
    facts: dict[str, ModelInfo] = {}
    for names in shuffled(named, rounds, seed):
        for name in names:
            with started(named[name], text) as worker:
                begun[name].append(worker.start)
                facts[name] = facts.get(name) or {"dimension": worker.dimension} | worker.facts()
            advance(1)
    return begun, facts


@dataclass(frozen=True)
class _Process:
    """What one process of a subject measured: its times, the parts of a bundle's, and its memory after all texts."""

    latency: Samples
    parts_us: Parts
    resident_bytes: int | None


def _process(
    encoders: Sequence[Subject], texts: Sequence[str], seed: int, advance: Callable[[int], None]
) -> dict[str, _Process]:
    """Start each subject, time single texts in turns, note the memory then, and split the bundles' time into parts."""
    with contextlib.ExitStack() as stack:
        workers = {each.name: stack.enter_context(started(each, texts[0])) for each in encoders}
        timers = {name: worker.times_ms for name, worker in workers.items()}
        latency = interleave_blocks(timers, texts, warmup=WARMUP, block=BLOCK, seed=seed, advance=advance)
        memory = {name: worker.memory()["resident_bytes"] for name, worker in workers.items()}
        bundles = {each.name: workers[each.name] for each in encoders if each.adapter == "bundle"}
        parts = {name: _parts(worker, texts, advance) for name, worker in bundles.items()}
    return {name: _Process(latency[name], parts.get(name, {}), memory[name]) for name in workers}


def _parts(worker: Worker, texts: Sequence[str], advance: Callable[[int], None]) -> Parts:
    worker.parts_ms(texts[:WARMUP])
    parts: dict[str, list[float]] = {}
    for _ in range(PASSES):
        for start in range(0, len(texts), BLOCK):
            for name, times_ms in worker.parts_ms(texts[start : start + BLOCK]).items():
                parts.setdefault(name, []).extend(time * 1e3 for time in times_ms)
        advance(len(texts))
    return {name: tuple(times) for name, times in parts.items()}
