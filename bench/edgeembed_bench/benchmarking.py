"""The benchmark: measure subjects side by side on the same texts and return a report."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from edgeembed_runtime.errors import CheckError, InputError
from rich.console import Console
from rich.progress import Progress

from edgeembed_bench.energy import IdlePower, energy_from, measure_idle
from edgeembed_bench.machine import LoadWatch, check_threads, this_machine
from edgeembed_bench.meters import EnergyMeter, detect_meter
from edgeembed_bench.model_info import ModelInfo, read_model_info
from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.results import FloorResult, SubjectResult
from edgeembed_bench.runner import RoundInputs, pin_to_cores, run_round
from edgeembed_bench.schedule import shuffled_orders
from edgeembed_bench.sizes import Size, measure_size
from edgeembed_bench.subjects import Subject, check_names
from edgeembed_bench.worker_client import Start, Worker, start_worker
from edgeembed_bench.workload import BenchmarkSettings, TextInfo, texts_of_lengths

_LINE_INTERVAL_S = 60.0
"""Between two lines of progress, if stderr is not a terminal."""


def benchmark(
    subjects: Sequence[Subject],
    texts: Sequence[str],
    settings: BenchmarkSettings | None = None,
    *,
    texts_from: str = "the caller",
    baseline: str | None = None,
    floor: Subject | None = None,
    left_out: Mapping[str, str] | None = None,
    meter: EnergyMeter | None = None,
) -> BenchmarkReport:
    """Measure the cost of encoders side by side in one run.

    Each round starts one fresh process per subject. The processes of a round take turns on the same texts and the same
    cores; the order is shuffled for each turn.

    Args:
        subjects: The encoders; names must be unique.
        texts: Texts to encode; repeated in order if there are fewer texts than calls.
        settings: Numbers of runs, processes and threads; the defaults if absent.
        texts_from: Where the texts come from, for the report.
        baseline: Name of the subject that the others are compared with; the first if absent.
        floor: A subject of the adapter "nothing", the reference of cold start and memory.
        left_out: Reason for each subject that is not measured, by name, for the report.
        meter: The energy meter; detected if absent.

    Returns:
        The report, with all samples.

    Raises:
        InputError: If there is nothing to measure, two subjects share a name, a subject's folder is incomplete, or a
            setting is too small, or there are fewer cores than threads.
        CheckError: If a subject does not start, ends early, does not answer in time, or returns embeddings that are not
            finite or not one per text.
    """
    settings = settings or BenchmarkSettings()
    settings.check(texts)
    check_threads(settings.threads)
    check_names([subject.name for subject in subjects], baseline)
    named = _with_floor(subjects, baseline, floor)
    baseline = baseline or subjects[0].name
    meter = meter or detect_meter()
    steps = len(subjects) * (1 + settings.processes * settings.runs_per_process)
    steps += len(named) * (1 + settings.processes)
    machine, watch = this_machine(), LoadWatch()
    with pin_to_cores(settings.threads) as cores, _progress(steps) as advance:
        sizes = _measure_sizes(subjects, advance)
        first = _start_once(named, texts, settings, advance)
        before = measure_idle(meter)
        results, floor_starts = [], []
        for number, names in enumerate(shuffled_orders(named, settings.processes, settings.seed)):
            inputs = RoundInputs.of_round(number, texts, settings, first.sweep, meter)
            measured, starts = run_round(named, names, inputs, settings, meter, advance)
            results.append(measured)
            floor_starts += starts
        idle = IdlePower(before, measure_idle(meter))
    subject_results = tuple(
        SubjectResult(
            subject=subject.for_report(),
            info=first.infos[subject.name],
            size=sizes[subject.name],
            discarded_start=first.starts[subject.name],
            processes=tuple(measured[subject.name].run for measured in results),
            energy=energy_from(
                meter, idle, [window for measured in results if (window := measured[subject.name].energy)]
            ),
        )
        for subject in subjects
    )
    return BenchmarkReport(
        created_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine,
        load=watch.load(),
        cores=cores,
        settings=_rounded(settings, tuple(first.sweep)),
        texts=TextInfo.of(texts, texts_from, first.counted_by),
        baseline=baseline,
        subjects=subject_results,
        floor=FloorResult(floor.for_report(), first.starts[floor.name], tuple(floor_starts)) if floor else None,
        left_out=dict(left_out or {}),
    )


@dataclass(frozen=True)
class _FirstStarts:
    """Results of one start of each subject, whose time is discarded because files may not be in the page cache yet.

    Attributes:
        starts: The cold starts, by subject name.
        infos: Models and packages of the encoders, by name.
        sweep: Texts of the length sweep, by length.
        counted_by: Name of the subject whose tokenizer counted the tokens of the sweep; "" without a sweep.
    """

    starts: dict[str, Start]
    infos: dict[str, ModelInfo]
    sweep: dict[int, list[str]]
    counted_by: str


def _with_floor(subjects: Sequence[Subject], baseline: str | None, floor: Subject | None) -> dict[str, Subject]:
    """Return the subjects by name, the baseline first and the floor last."""
    named = {subject.name: subject for subject in sorted(subjects, key=lambda each: each.name != baseline)}
    for subject in subjects:
        if subject.adapter == "nothing":
            raise InputError(f"{subject.name} encodes nothing; pass it as the floor")
    if floor is None:
        return named
    if floor.adapter != "nothing" or floor.name in named:
        raise InputError(f"{floor.name} cannot be the floor; expected the adapter nothing, and a name of its own")
    return named | {floor.name: floor}


def _rounded(settings: BenchmarkSettings, lengths: tuple[int, ...]) -> BenchmarkSettings:
    """Return the settings with the actual numbers of runs, which are multiples of the number of processes."""
    return replace(
        settings,
        runs=settings.runs_per_process * settings.processes,
        batches=settings.batches_per_process * settings.processes,
        part_runs=settings.part_runs_per_process * settings.processes,
        sweep_runs=settings.sweep_runs_per_process * settings.processes if lengths else 0,
        lengths=lengths,
    )


def _measure_sizes(subjects: Sequence[Subject], advance: Callable[[int], None]) -> dict[str, Size]:
    sizes = {}
    for subject in subjects:
        sizes[subject.name] = measure_size(subject)
        advance(1)
    return sizes


def _start_once(
    subjects: Mapping[str, Subject],
    texts: Sequence[str],
    settings: BenchmarkSettings,
    advance: Callable[[int], None],
) -> _FirstStarts:
    first = _FirstStarts({}, {}, {}, "")
    for name, subject in subjects.items():
        with start_worker(subject, texts[0], threads=settings.threads) as worker:
            first.starts[name] = worker.start
            if subject.adapter != "nothing":
                _check_batch(name, worker, texts)
                first.infos[name] = read_model_info(subject, worker)
                if not first.sweep and settings.sweep_runs:
                    count = settings.sweep_runs_per_process
                    sweep = texts_of_lengths(texts, settings.lengths, count, worker.count_tokens)
                    first = replace(first, sweep=sweep, counted_by=name if sweep else "")
        advance(1)
    return first


def _check_batch(name: str, worker: Worker, texts: Sequence[str]) -> None:
    embeddings = worker.encode([texts[0], texts[-1]])
    if embeddings.shape != (2, worker.dimension):
        expected = f"expected (2, {worker.dimension})"
        raise CheckError(f"{name} returns embeddings of shape {embeddings.shape} for two texts; {expected}")
    if not np.isfinite(embeddings).all():
        raise CheckError(f"{name} returns embeddings that are not finite; expected finite numbers")


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Report progress on stderr within a `with` block: a bar on a terminal, elsewhere a line a minute.

    Args:
        total: Number of steps.

    Yields:
        A function that is called with the number of steps done since its last call.
    """
    console = Console(stderr=True)
    hidden = not console.is_terminal
    printed_s = time.monotonic()
    # Redrawn on advance only: a thread that redraws would take CPU time from the subjects.
    with Progress(console=console, auto_refresh=False, transient=True, disable=hidden) as bar:
        task = bar.add_task("measuring", total=total)

        def advance(steps: int) -> None:
            nonlocal printed_s
            bar.advance(task, steps)
            bar.refresh()
            if hidden and time.monotonic() - printed_s >= _LINE_INTERVAL_S:
                printed_s = time.monotonic()
                console.print(f"measuring: {bar.tasks[0].percentage:.0f} % done", highlight=False)

        yield advance
