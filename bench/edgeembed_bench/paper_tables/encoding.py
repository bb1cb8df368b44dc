"""Tables of encoding cost: table 4 of SimTDE, table 5 of bidirectional CMOW, and table 3 of Xayn."""

from collections.abc import Mapping, Sequence

import numpy as np
from edgeembed_runtime.errors import InputError

from edgeembed_bench.paper_tables.base import PaperTable, check_counts, open_subjects
from edgeembed_bench.render.tables import millions
from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.schedule import interleave_blocks, shuffled_orders
from edgeembed_bench.stats import Quartiles
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import Worker

# SimTDE
PASSES = 3
_WARMUP_TEXTS = 20
_BLOCK_TEXTS = 100

# CMOW
BATCHES = 1024
BATCH_SIZE = 256
TOKENS = 64


def simtde_table(
    subjects: Sequence[Subject],
    pairs: Sequence[tuple[str, str]],
    *,
    pairs_from: str,
    threads: int = 1,
    passes: int = PASSES,
    seed: int = 0,
) -> PaperTable:
    """Measure table 4 of SimTDE (Xie et al., SIGIR 2023): seconds of a pass over all pairs, one text at a time.

    The paper uses STS-B's test set, batch size 1, a CPU, and the mean of three passes.

    Args:
        subjects: The rows; speed-ups are relative to the first, as to the teacher in the paper.
        pairs: Sentence pairs; both sentences of a pair are encoded, one by one.
        pairs_from: Name of the pairs' source.
        threads: Threads per subject; the paper does not state their number.
        passes: Number of passes over all pairs.
        seed: Seed of the order in which subjects take turns.

    Returns:
        The table; its samples hold the seconds of each pass.

    Raises:
        InputError: If there are no subjects, pairs or passes, or two subjects share a name.
        CheckError: If a subject fails.
    """
    check_counts(pairs=len(pairs), passes=passes)
    texts = [text for pair in pairs for text in pair]
    with open_subjects(subjects, texts[0], threads) as opened:
        timers = {name: worker.times_ms for name, worker in opened.workers.items()}
        timed = [
            interleave_blocks(timers, texts, warmup=_WARMUP_TEXTS, block=_BLOCK_TEXTS, seed=seed + number)
            for number in range(passes)
        ]
    pass_s = {name: [sum(each[name].timed_ms) / 1e3 for each in timed] for name in timers}
    mean_s = {name: float(np.mean(seconds)) for name, seconds in pass_s.items()}
    baseline_s = mean_s[subjects[0].name]
    rows = [
        (
            name,
            millions(opened.info[name].parameters),
            f"{mean_s[name]:.2f} (x{baseline_s / mean_s[name]:.1f})",
            f"{min(pass_s[name]):.2f} to {max(pass_s[name]):.2f}",
        )
        for name in mean_s
    ]
    return opened.table(
        "simtde",
        "SimTDE, table 4: inference time comparison",
        columns=("model", "params", "time (seconds)", "fastest to slowest pass"),
        rows=tuple(rows),
        notes=(
            (
                f"a pass: both sentences of {len(pairs):,} pairs of {pairs_from}, one text per call, tokenization "
                f"included; mean of {passes} passes; {threads} thread(s)"
            ),
            f"subjects take turns of {_BLOCK_TEXTS} texts in a shuffled order",
        ),
        samples={name: {"pass_s": seconds} for name, seconds in pass_s.items()},
    )


def cmow_table(
    subjects: Sequence[Subject],
    texts: Sequence[str],
    *,
    batches: int = BATCHES,
    batch_size: int = BATCH_SIZE,
    tokens: int = TOKENS,
    threads: int = 1,
    seed: int = 0,
) -> PaperTable:
    """Measure table 5 of the bidirectional CMOW/CBOW-Hybrid paper: sentences per second on random sequences.

    All sequences have the same length and are encoded in batches.

    Args:
        subjects: The rows. Words of one token are chosen with the tokenizer of the first subject that counts tokens.
        texts: Texts from which words are drawn.
        batches: Number of batches; the paper's 1,024 take hours on a CPU.
        batch_size: Number of sequences per batch.
        tokens: Number of tokens per sequence.
        threads: Threads per subject.
        seed: Seed of the words and of the order in which subjects take turns.

    Returns:
        The table; its samples hold the time of each batch.

    Raises:
        InputError: If there are no subjects, texts, batches or sequences, two subjects share a name, no subject counts
            tokens, no word of the texts is a single token, or `tokens` leaves no room for a word.
        CheckError: If a subject fails.
    """
    check_counts(texts=len(texts), batches=batches, batch_size=batch_size, tokens=tokens)
    tokenization_included = set()
    with open_subjects(subjects, texts[0], threads) as opened:
        words, special_tokens, counted_by = _single_token_words(opened.workers, texts)
        if tokens <= special_tokens:
            raise InputError(
                f"tokens: {tokens} given; expected more than the {special_tokens} special tokens of {counted_by}"
            )
        generator = np.random.default_rng(seed)
        batch_ms: dict[str, list[float]] = {name: [] for name in opened.workers}
        for names in shuffled_orders(batch_ms, batches + 1, seed):
            drawn = generator.choice(words, size=(batch_size, tokens - special_tokens))
            batch = [" ".join(row) for row in drawn]
            for name in names:
                worker = opened.workers[name]
                times_ms = worker.model_times_ms([batch])
                if times_ms is None:
                    tokenization_included.add(name)
                    times_ms = worker.times_ms([batch])
                batch_ms[name].extend(times_ms)
    timed_ms = {name: times[1:] for name, times in batch_ms.items()}  # the first batch is a warm-up
    rows = []
    for name, times in timed_ms.items():
        speed = Quartiles.of([batch_size / time * 1e3 for time in times])
        quartiles = f"{speed.q1:,.0f} to {speed.q3:,.0f}"
        rows.append((name, millions(opened.info[name].parameters), f"{speed.median:,.0f}", quartiles))
    notes = [
        (
            f"{batches:,} batches (the paper: {BATCHES:,}) of {batch_size} random sequences of {tokens} tokens, "
            f"made of words that are one token to {counted_by}; {threads} thread(s) of this CPU (the paper: an A100)"
        ),
        "tokenization is not included, as in the paper",
    ]
    if tokenization_included:
        names_included = ", ".join(sorted(tokenization_included))
        notes.append(f"tokenization is included for {names_included}, where it cannot be separated")
    return opened.table(
        "cmow",
        "CMOW/CBOW-Hybrid, table 5: encoding speed",
        columns=("model", "# parameters", "encoding speed (sentences / second)", "quartiles"),
        rows=tuple(rows),
        notes=tuple(notes),
        samples={name: {"batch_ms": times} for name, times in timed_ms.items()},
    )


def _single_token_words(workers: Mapping[str, Worker], texts: Sequence[str]) -> tuple[list[str], int, str]:
    """Return words of one token each, the number of special tokens per text, and the subject that counted them."""
    words = list(dict.fromkeys(" ".join(texts).split()))
    counters = []
    for name, worker in workers.items():
        counts = worker.count_tokens(["", *words])
        if counts is not None:
            counters.append(name)
            special_tokens, *word_counts = counts
            single = [word for word, count in zip(words, word_counts, strict=True) if count == special_tokens + 1]
            if single:
                return single, special_tokens, name
    if counters:
        names = ", ".join(counters)
        raise InputError(
            f"none of the {len(words)} words of the texts is a single token to {names}; expected other texts"
        )
    raise InputError("no subject counts the tokens of a text; expected one that does, such as a bundle")


def xayn_table(report: BenchmarkReport) -> PaperTable:
    """Return table 3 of Xayn's extreme compression paper, filled with a benchmark: energy and time per inference.

    The paper's unit is kJ. This table reads it as mJ, since an inference of 153 ms on a laptop cannot use kilojoules.

    Args:
        report: The report of a benchmark; the paper timed 1,000 single texts.

    Returns:
        The table. Cells of energy that was not measured say so, and are never 0.
    """
    rows = [
        (
            subject.name,
            str(subject.info.dimension),
            _median_and_quartiles(subject.energy.mj_per_inference),
            _median_and_quartiles(subject.energy.mj_above_idle),
            _median_and_quartiles(subject.latency),
        )
        for subject in report
    ]
    reasons = {subject.energy.reason for subject in report if subject.energy.reason is not None}
    sources = {subject.energy.source for subject in report if subject.energy.source is not None}
    notes = [
        (
            f"time: {report.settings.runs:,} single texts per subject in {report.settings.processes} processes, "
            f"tokenization included; {report.settings.threads} thread(s)"
        ),
        *(f"energy: {source}, windows of many inferences" for source in sorted(sources)),
        *(f"energy not measured: {reason}" for reason in sorted(reasons)),
    ]
    return PaperTable(
        name="xayn",
        source="Xayn's extreme compression, table 3: energy and inference time",
        columns=("model", "dim", "energy [mJ]", "energy above idle [mJ]", "inference time [ms]"),
        rows=tuple(rows),
        notes=tuple(notes),
        samples={subject.name: {"latency_ms": subject.latency_ms} for subject in report},
        machine=report.machine,
        load=report.load,
        created_utc=report.created_utc,
    )


def _median_and_quartiles(quartiles: Quartiles | None) -> str:
    return "not measured" if quartiles is None else f"{quartiles.median:.3f} [{quartiles.q1:.3f}, {quartiles.q3:.3f}]"
