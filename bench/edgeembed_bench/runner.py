"""One round of the benchmark: start one process per subject, measure the processes in turns, and end them."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgeembed_bench.energy import EnergyWindow, measure_window
from edgeembed_bench.machine import affinity, check_threads, set_affinity
from edgeembed_bench.meters import EnergyMeter
from edgeembed_bench.results import ProcessRun
from edgeembed_bench.schedule import interleave_blocks
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import Start, Worker, start_worker
from edgeembed_bench.workload import BenchmarkSettings

_MAX_PART_RUNS = 10  # per process, for subjects other than bundles
_PARTS_PER_REQUEST = 20
_SHORT_WINDOW_S = 2.0
_LONG_WINDOWS = 3


@dataclass(frozen=True)
class RoundInputs:
    """Inputs that all subjects encode in one round.

    Attributes:
        singles: Texts to encode one by one.
        batches: Full batches of texts.
        sweep: The texts of each length of the length sweep.
        seed: Seed of the order of turns.
        measures_energy: Whether energy is measured in this round.
    """

    singles: tuple[str, ...]
    batches: tuple[list[str], ...]
    sweep: tuple[tuple[str, ...], ...]
    seed: int
    measures_energy: bool

    @classmethod
    def of_round(
        cls,
        number: int,
        texts: Sequence[str],
        settings: BenchmarkSettings,
        sweep: Mapping[int, Sequence[str]],
        meter: EnergyMeter,
    ) -> "RoundInputs":
        """Return the inputs of one round.

        Args:
            number: Number of the round, from 0.
            texts: All texts of the benchmark; repeated in order if there are too few.
            settings: The settings of the benchmark.
            sweep: Texts of the length sweep, by length in tokens.
            meter: The energy meter.
        """
        singles = _share(texts, number, settings.runs_per_process)
        flat = _share(texts, number, settings.batches_per_process * settings.batch_size)
        size = settings.batch_size
        batches = [flat[start : start + size] for start in range(0, len(flat), size)]
        # A window of a battery meter takes half a minute, so only some rounds have one.
        measures_energy = meter.min_window_s <= _SHORT_WINDOW_S or number < _LONG_WINDOWS
        sweep_texts = tuple(map(tuple, sweep.values()))
        return cls(tuple(singles), tuple(batches), sweep_texts, settings.seed + number, measures_energy)


@dataclass(frozen=True)
class RoundResult:
    """Results of one process of a subject.

    Attributes:
        run: Times and memory of the process.
        energy: Energy window of the process; None in rounds without energy measurement.
    """

    run: ProcessRun
    energy: EnergyWindow | None


def run_round(
    subjects: Mapping[str, Subject],
    names: Sequence[str],
    inputs: RoundInputs,
    settings: BenchmarkSettings,
    meter: EnergyMeter,
    advance: Callable[[int], None],
) -> tuple[dict[str, RoundResult], list[Start]]:
    """Start one process per subject, measure the encoders in turns, and end the processes.

    Args:
        subjects: The subjects by name. A process of the adapter "nothing" is ended as soon as it has started.
        names: The names in the order in which to start the processes.
        inputs: The inputs of the round.
        settings: The settings of the benchmark.
        meter: The energy meter.
        advance: Called with the number of steps done.

    Returns:
        The results of the encoders by name, and the cold starts of the subjects with the adapter "nothing".
    """
    with contextlib.ExitStack() as stack:
        workers: dict[str, Worker] = {}
        floor_starts = []
        for name in names:
            subject = subjects[name]
            process = start_worker(subject, inputs.singles[0], threads=settings.threads)
            if subject.adapter == "nothing":
                with process as worker:
                    floor_starts.append(worker.start)
            else:
                workers[name] = stack.enter_context(process)
            advance(1)
        return _measure(subjects, workers, inputs, settings, meter, advance), floor_starts


@contextlib.contextmanager
def pin_to_cores(count: int = 1) -> Iterator[tuple[int, ...] | None]:
    """Pin this process and its child processes to `count` cores within a `with` block.

    Args:
        count: Number of cores.

    Yields:
        Numbers of the cores: the last available ones, because the first core serves most interrupts. None on systems
        that cannot pin processes (macOS).

    Raises:
        InputError: If fewer than `count` cores are available to this process.
    """
    allowed = affinity()
    if allowed is None:
        yield None
        return
    check_threads(count)
    cores = tuple(sorted(allowed)[-count:])
    set_affinity(cores)
    try:
        yield cores
    finally:
        set_affinity(allowed)


def _measure(
    subjects: Mapping[str, Subject],
    workers: Mapping[str, Worker],
    inputs: RoundInputs,
    settings: BenchmarkSettings,
    meter: EnergyMeter,
    advance: Callable[[int], None],
) -> dict[str, RoundResult]:
    singles = _SingleTextTimers(workers)
    latency = interleave_blocks(
        singles.timers,
        inputs.singles,
        warmup=settings.warmup,
        block=settings.block,
        seed=inputs.seed,
        settle_ms=settings.settle_ms,
        advance=advance,
    )
    memory = {name: worker.memory() for name, worker in workers.items()}
    timers = {name: worker.times_ms for name, worker in workers.items()}
    in_one_turn = functools.partial(interleave_blocks, timers, warmup=0, seed=inputs.seed)
    batches = in_one_turn(inputs.batches, block=max(1, len(inputs.batches))) if inputs.batches else {}
    sweep = [in_one_turn(texts, block=len(texts)) for texts in inputs.sweep]
    energy = _measure_energy(workers, inputs.singles, meter) if inputs.measures_energy else {}
    return {
        name: RoundResult(
            ProcessRun(
                start=worker.start,
                latency_ms=latency[name].timed_ms,
                warmup_ms=latency[name].warmup_ms,
                cpu_s=singles.cpu_s[name],
                parts_ms=_parts_ms(worker, subjects[name], inputs.singles, settings.part_runs_per_process),
                batches_ms=batches[name].timed_ms if batches else (),
                sweep_ms=tuple(samples[name].timed_ms for samples in sweep),
                sweep_tokens=tuple(worker.count_tokens([texts[-1] for texts in inputs.sweep]) or ()),
                timer_ms=float(np.median(worker.timer_ms(settings.runs_per_process))),
                resident_bytes=memory[name]["resident_bytes"],
                peak_bytes=memory[name]["peak_bytes"],
            ),
            energy.get(name),
        )
        for name, worker in workers.items()
    }


class _SingleTextTimers:
    """Time single texts, and sum each subject's CPU time in seconds."""

    def __init__(self, workers: Mapping[str, Worker]) -> None:
        self.cpu_s = dict.fromkeys(workers, 0.0)
        self.timers = {name: functools.partial(self._times_ms, name, worker) for name, worker in workers.items()}

    def _times_ms(self, name: str, worker: Worker, texts: Sequence[str]) -> list[float]:
        times_ms, cpu_s = worker.times_and_cpu(texts)
        self.cpu_s[name] += cpu_s
        return times_ms


def _measure_energy(
    workers: Mapping[str, Worker], texts: tuple[str, ...], meter: EnergyMeter
) -> dict[str, EnergyWindow]:
    return {
        name: measure_window(meter, functools.partial(worker.encode_for, texts=texts))
        for name, worker in workers.items()
    }


def _parts_ms(worker: Worker, subject: Subject, texts: Sequence[str], runs: int) -> dict[str, tuple[float, ...]]:
    """Return the times in milliseconds by part, for `runs` texts repeated in order, after one discarded request."""
    if subject.adapter != "bundle":
        runs = min(runs, _MAX_PART_RUNS)
    chosen = list(itertools.islice(itertools.cycle(texts), runs))
    parts: dict[str, list[float]] = {}
    if not chosen:
        return {}
    worker.parts_ms(chosen[:_PARTS_PER_REQUEST])
    for start in range(0, runs, _PARTS_PER_REQUEST):
        for part, times in worker.parts_ms(chosen[start : start + _PARTS_PER_REQUEST]).items():
            parts.setdefault(part, []).extend(times)
    return {part: tuple(times) for part, times in parts.items()}


def _share(texts: Sequence[str], number: int, count: int) -> list[str]:
    return list(itertools.islice(itertools.cycle(texts), number * count, (number + 1) * count))
