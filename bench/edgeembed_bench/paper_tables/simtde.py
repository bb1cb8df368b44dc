"""Table 4 of SimTDE (Xie et al., SIGIR 2023): seconds of a full pass over STS-B's test set, one text at a time."""

from collections.abc import Sequence

import numpy as np

from edgeembed_bench.formats import millions
from edgeembed_bench.paper_tables.base import PaperTable, open_subjects
from edgeembed_bench.schedule import interleave_blocks
from edgeembed_bench.subjects import Subject

PASSES = 3
_WARMUP_TEXTS = 20
_BLOCK_TEXTS = 100


def simtde_table(
    subjects: Sequence[Subject],
    pairs: Sequence[tuple[str, str]],
    *,
    pairs_from: str,
    threads: int = 1,
    passes: int = PASSES,
    seed: int = 0,
) -> PaperTable:
    """Measure table 4: the time of a pass over all pairs at batch size 1 on the CPU, mean of three passes.

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
        InputError: If there are no subjects, or two share a name.
        CheckError: If a subject fails.
    """
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
