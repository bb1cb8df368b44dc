"""One round of the bench: every subject is started afresh, takes turns with the others, and is ended."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgeembed_bench.energy import EnergyWindow, measure_window
from edgeembed_bench.meters import EnergyMeter
from edgeembed_bench.plan import Plan
from edgeembed_bench.report import ProcessRun
from edgeembed_bench.schedule import interleave_blocks
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import Worker, started

_PARTS = 10  # texts that are split into their parts, which takes eight times a text
_SHORT_S = 2.0
_LONG_WINDOWS = 3


@dataclass(frozen=True)
class Work:
    """What each subject encodes in a round.

    Attributes:
        singles: Texts to encode one by one.
        batches: Full batches.
        sweep: For each length some texts.
        seed: Decides the order of turns.
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
        plan: Plan,
        sweep: Mapping[int, Sequence[str]],
        meter: EnergyMeter,
    ) -> "Work":
        """Give a round's share of the work.

        Args:
            number: The round's, from 0.
            texts: Real sentences; repeated in order where there are too few.
            plan: How much is measured.
            sweep: Texts by length.
            meter: What measures energy.
        """
        singles = _share(texts, number, plan.runs_a_process)
        flat = _share(texts, number, plan.batches_a_process * plan.batch_size)
        batches = [flat[start : start + plan.batch_size] for start in range(0, len(flat), plan.batch_size)]
        # A battery needs half a minute a window.
        measures_energy = meter.min_window_s <= _SHORT_S or number < _LONG_WINDOWS
        return cls(
            tuple(singles), tuple(batches), tuple(map(tuple, sweep.values())), plan.seed + number, measures_energy
        )


@dataclass(frozen=True)
class RoundResult:
    """What one process of a subject gave.

    Attributes:
        run: Its times and memory.
        energy: Its window of energy; None in the rounds that measure none.
    """

    run: ProcessRun
    energy: EnergyWindow | None


def run_round(
    subjects: Mapping[str, Subject],
    names: Sequence[str],
    work: Work,
    plan: Plan,
    meter: EnergyMeter,
    advance: Callable[[int], None],
) -> dict[str, RoundResult]:
    """Start the subjects, measure all that a round measures, and end them.

    Args:
        subjects: By name.
        names: In which order to start them.
        work: What they encode.
        plan: How much is measured.
        meter: What measures energy.
        advance: Told how many steps were done.
    """
    with contextlib.ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for name in names:
            started_now = started(subjects[name], work.singles[0], threads=plan.threads)
            workers[name] = stack.enter_context(started_now)
            advance(1)
        singles = _Singles(workers)
        latency = interleave_blocks(
            singles.timers,
            work.singles,
            warmup=plan.warmup,
            block=plan.block,
            seed=work.seed,
            settle_ms=plan.settle_ms,
            advance=advance,
        )
        memory = {name: worker.memory() for name, worker in workers.items()}
        timers = {name: worker.times_ms for name, worker in workers.items()}
        in_one_turn = functools.partial(interleave_blocks, timers, warmup=0, seed=work.seed)
        batches = in_one_turn(work.batches, block=max(1, len(work.batches))) if work.batches else {}
        sweep = [in_one_turn(texts, block=len(texts)) for texts in work.sweep]
        energy = _energy(workers, work.singles, meter) if work.measures_energy else {}
        return {
            name: RoundResult(
                ProcessRun(
                    start=worker.start,
                    latency_ms=latency[name].timed_ms,
                    warmup_ms=latency[name].warmup_ms,
                    cpu_s=singles.cpu_s[name],
                    parts_ms=_parts_ms(worker, work.singles[:_PARTS]),
                    batches_ms=batches[name].timed_ms if batches else (),
                    sweep_ms=tuple(samples[name].timed_ms for samples in sweep),
                    sweep_tokens=tuple(worker.tokens([texts[-1] for texts in work.sweep]) or ()),
                    overhead_ms=float(np.median(worker.overhead_ms(plan.runs_a_process))),
                    resident_bytes=memory[name]["resident_bytes"],
                    peak_bytes=memory[name]["peak_bytes"],
                ),
                energy.get(name),
            )
            for name, worker in workers.items()
        }


class _Singles:
    """Times single texts, and adds up the processor time of each subject."""

    def __init__(self, workers: Mapping[str, Worker]) -> None:
        self.cpu_s = dict.fromkeys(workers, 0.0)
        self.timers = {name: functools.partial(self._times_ms, name, worker) for name, worker in workers.items()}

    def _times_ms(self, name: str, worker: Worker, texts: Sequence[str]) -> list[float]:
        times_ms, cpu_s = worker.timed(texts)
        self.cpu_s[name] += cpu_s
        return times_ms


def _energy(workers: Mapping[str, Worker], texts: tuple[str, ...], meter: EnergyMeter) -> dict[str, EnergyWindow]:
    return {
        name: measure_window(meter, functools.partial(worker.work, texts=texts)) for name, worker in workers.items()
    }


def _parts_ms(worker: Worker, texts: Sequence[str]) -> dict[str, tuple[float, ...]]:
    return {part: tuple(times) for part, times in worker.parts_ms(texts).items()}


def _share(texts: Sequence[str], number: int, count: int) -> list[str]:
    return list(itertools.islice(itertools.cycle(texts), number * count, (number + 1) * count))
