"""The bench itself: subjects and texts in, a report of what they cost out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from edgeembed_runtime.errors import CheckError

from edgeembed_bench.energy import IdlePower, energy_from, measure_idle
from edgeembed_bench.lengths import texts_of_lengths
from edgeembed_bench.machine import LoadWatch, this_machine
from edgeembed_bench.meters import EnergyMeter, detect_meter
from edgeembed_bench.model_info import ModelInfo, read_model_info
from edgeembed_bench.plan import Plan
from edgeembed_bench.progress import progress_bar
from edgeembed_bench.report import BenchReport, Settings, SubjectResult
from edgeembed_bench.runner import Work, run_round
from edgeembed_bench.schedule import shuffled
from edgeembed_bench.sizes import Size, measure_size
from edgeembed_bench.subjects import Subject, check_names
from edgeembed_bench.worker_client import Start, Worker, pinned_to_cores, started


def bench(
    subjects: Sequence[Subject],
    texts: Sequence[str],
    plan: Plan | None = None,
    *,
    texts_from: str = "the caller",
    baseline: str | None = None,
    meter: EnergyMeter | None = None,
) -> BenchReport:
    """Measure what encoders cost, side by side in one run.

    Every subject is started afresh several times; those started together take turns, in an order that is shuffled each
    time, on the same texts and the same cores.

    Args:
        subjects: The encoders; their names must differ.
        texts: Real sentences; repeated in order where there are fewer than calls.
        plan: How much is measured.
        texts_from: Where the texts come from.
        baseline: Name of the subject that the others are compared with; the first if absent.
        meter: Energy meter; this machine's if absent.

    Returns:
        The report, raw samples included.

    Raises:
        InputError: If there is nothing to measure, two subjects share a name, a subject's folder is incomplete, or a
            number is below what makes sense.
        CheckError: If a subject does not start, ends early, gives no answer in time, or gives vectors that are not
            finite or not one for each text.
    """
    plan = plan or Plan()
    plan.check(texts)
    check_names([subject.name for subject in subjects], baseline)
    baseline = baseline or subjects[0].name
    meter = meter or detect_meter()
    named = {subject.name: subject for subject in sorted(subjects, key=lambda each: each.name != baseline)}
    steps = len(subjects) * (2 + plan.processes * (1 + plan.runs_a_process))
    machine, watch = this_machine(), LoadWatch()
    with pinned_to_cores(plan.threads), progress_bar(steps) as advance:
        sizes = _sizes(subjects, advance)
        sweep, counted_by, first = _first_processes(named, texts, plan, advance)
        before = measure_idle(meter)
        found = [
            run_round(named, names, Work.of_round(number, texts, plan, sweep, meter), plan, meter, advance)
            for number, names in enumerate(shuffled(named, plan.processes, plan.seed))
        ]
        idle = IdlePower(before, measure_idle(meter))
    results = tuple(
        SubjectResult(
            subject=subject,
            facts=first[subject.name].facts,
            size=sizes[subject.name],
            discarded_start=first[subject.name].start,
            processes=tuple(each[subject.name].run for each in found),
            energy=energy_from(meter, idle, [window for each in found if (window := each[subject.name].energy)]),
        )
        for subject in subjects
    )
    settings = Settings.of(plan, texts, texts_from, lengths=tuple(sweep), counted_by=counted_by)
    created_utc = datetime.now(UTC).isoformat(timespec="seconds")
    return BenchReport(created_utc, machine, watch.load(), settings, baseline, results)


def _sizes(subjects: Sequence[Subject], advance: Callable[[int], None]) -> dict[str, Size]:
    sizes = {}
    for subject in subjects:
        sizes[subject.name] = measure_size(subject)
        advance(1)
    return sizes


@dataclass(frozen=True)
class _First:
    """What a subject's first process tells; its start does not count, for the system's file cache may be cold."""

    start: Start
    facts: ModelInfo


def _first_processes(
    subjects: dict[str, Subject], texts: Sequence[str], plan: Plan, advance: Callable[[int], None]
) -> tuple[dict[int, list[str]], str, dict[str, _First]]:
    """Give the texts of the length sweep, the subject that counted their tokens, and what each tells of itself."""
    sweep: dict[int, list[str]] = {}
    counted_by = ""
    first: dict[str, _First] = {}
    for name, subject in subjects.items():
        with started(subject, texts[0], threads=plan.threads) as worker:
            _check_batch(name, worker, texts)
            first[name] = _First(worker.start, read_model_info(subject, worker))
            if not sweep and plan.sweep_runs:
                sweep = texts_of_lengths(texts, plan.lengths, plan.sweep_a_process, worker.tokens)
                counted_by = name if sweep else ""
        advance(1)
    return sweep, counted_by, first


def _check_batch(name: str, worker: Worker, texts: Sequence[str]) -> None:
    vectors = worker.encode([texts[0], texts[-1]])
    if vectors.shape != (2, worker.dimension):
        raise CheckError(f"{name} gives {vectors.shape} for two texts; expected one vector of {worker.dimension} each")
    if not np.isfinite(vectors).all():
        raise CheckError(f"{name} gives vectors that are not finite; what they cost would mean nothing")
