"""The bench itself: subjects and texts in, a report of what they cost out."""

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
from edgeembed_runtime.errors import CheckError, InputError

from edgeembed_bench.interleaving import Samples, interleaved
from edgeembed_bench.machine import this_machine
from edgeembed_bench.meters import EnergyMeter, NullMeter, find_meter
from edgeembed_bench.progress import progress_bar
from edgeembed_bench.report import BenchReport, Energy, Settings, SubjectResult
from edgeembed_bench.subjects import Encode, Subject

BLOCK = 20  # calls a turn: short against the drift of a machine, long against the cost of changing turns
BATCHES = 20
BATCH_BLOCK = 4
BATCH_SIZE = 32  # the default of sentence-transformers
WINDOW_S = 1.0  # of encoding for an energy reading; RAPL counts every millisecond


def bench(
    subjects: Sequence[Subject],
    texts: Sequence[str],
    *,
    runs: int = 1000,
    threads: int = 1,
    warmup: int = 50,
    seed: int = 0,
    baseline: str | None = None,
    meter: EnergyMeter | None = None,
) -> BenchReport:
    """Measure what encoders cost, side by side in one run.

    Args:
        subjects: The encoders; their names must differ.
        texts: Real sentences; repeated in order where there are fewer than calls.
        runs: Counted batch-1 calls a subject; 1,000 as in the tables of the Xayn paper.
        threads: Threads each subject may use; at batch 1 two are slower than one.
        warmup: Calls a subject before the first counted one; graph optimisation and caches settle within 50.
        seed: Decides the order of turns.
        baseline: Name of the subject that the others are compared with; the first if absent.
        meter: Energy meter; this machine's if absent.

    Returns:
        The report, raw samples included.

    Raises:
        InputError: If there is nothing to measure, or two subjects share a name, or a number is below 1.
        CheckError: If a subject's vectors are not finite or not of the right shape.
    """
    _check_names([subject.name for subject in subjects], baseline)
    _check_numbers({"texts": len(texts), "runs": runs, "threads": threads, "warmup": warmup})
    characters = float(np.mean([len(text) for text in texts]))
    settings = Settings(runs, warmup, BLOCK, BATCHES, BATCH_SIZE, threads, seed, len(texts), characters)
    meter = meter or find_meter()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_tokenizer_threads(threads))
        encoders = {subject.name: stack.enter_context(subject.open(threads)) for subject in subjects}
        for name, encode in encoders.items():
            _check_vectors(name, encode, texts)
        advance = stack.enter_context(progress_bar(len(subjects) * (runs + BATCHES)))
        latency, batches = _times(encoders, texts, settings, advance)
        energy = {name: _energy(encode, texts, meter) for name, encode in encoders.items()}
    results = tuple(_result(subject, latency, batches, energy) for subject in subjects)
    created_utc = datetime.now(UTC).isoformat(timespec="seconds")
    return BenchReport(created_utc, this_machine(), settings, baseline or subjects[0].name, results)


def _check_names(names: Sequence[str], baseline: str | None) -> None:
    if not names:
        raise InputError("no subjects given; expected one or more encoders to measure")
    if len(set(names)) < len(names):
        raise InputError(f"subjects share a name: {', '.join(names)}; expected each name once")
    if baseline is not None and baseline not in names:
        raise InputError(f"baseline {baseline} is not among the subjects: {', '.join(names)}")


def _check_numbers(numbers: Mapping[str, int]) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise InputError(f"{name}: {number} given; expected at least 1")


def _check_vectors(name: str, encode: Encode, texts: Sequence[str]) -> None:
    single, pair = encode(texts[0]), encode([texts[0], texts[-1]])
    if np.ndim(single) != 1 or np.shape(pair) != (2, *np.shape(single)):
        shapes = f"{np.shape(single)} for a text and {np.shape(pair)} for two"
        raise CheckError(f"{name} gives shape {shapes}; expected (dim,) and (2, dim)")
    if not np.isfinite(single).all() or not np.isfinite(pair).all():
        raise CheckError(f"{name} gives vectors that are not finite; what they cost would mean nothing")


def _times(
    encoders: Mapping[str, Encode], texts: Sequence[str], settings: Settings, advance: Callable[[int], None]
) -> tuple[dict[str, Samples], dict[str, Samples]]:
    endless = itertools.cycle(texts)
    singles = list(itertools.islice(endless, settings.runs))
    full = [list(itertools.islice(endless, settings.batch_size)) for _ in range(settings.batches)]
    latency = interleaved(
        encoders, singles, warmup=settings.warmup, block=settings.block, seed=settings.seed, advance=advance
    )
    batches = interleaved(encoders, full, warmup=1, block=BATCH_BLOCK, seed=settings.seed, advance=advance)
    return latency, batches


def _energy(encode: Encode, texts: Sequence[str], meter: EnergyMeter) -> Energy:
    if isinstance(meter, NullMeter):
        return Energy(None, 0, None, None, meter.reason)
    endless, inferences = itertools.cycle(texts), 0
    meter.begin()
    start = time.perf_counter()
    while (elapsed_s := time.perf_counter() - start) < WINDOW_S:
        for text in itertools.islice(endless, BLOCK):
            encode(text)
        inferences += BLOCK
    reading = meter.end()
    millijoules = None if reading.energy_j is None else reading.energy_j * 1e3 / inferences
    return Energy(millijoules, inferences, elapsed_s, meter.source, reading.reason)


def _result(
    subject: Subject,
    latency: Mapping[str, Samples],
    batches: Mapping[str, Samples],
    energy: Mapping[str, Energy],
) -> SubjectResult:
    return SubjectResult(
        name=subject.name,
        kind=subject.kind,
        size_bytes=subject.size_bytes,
        size_of=subject.size_of,
        parameters=subject.parameters,
        latency=latency[subject.name],
        batches=batches[subject.name],
        batch_size=BATCH_SIZE,
        energy=energy[subject.name],
    )


@contextlib.contextmanager
def _tokenizer_threads(threads: int) -> Iterator[None]:
    # tokenizers spreads a batch over all cores unless told otherwise, whatever torch is held to.
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if threads == 1 else "true"
    try:
        yield
    finally:
        del os.environ["TOKENIZERS_PARALLELISM"]
        if before is not None:
            os.environ["TOKENIZERS_PARALLELISM"] = before
