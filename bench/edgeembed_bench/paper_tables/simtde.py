"""Table 4 of SimTDE (Xie et al., SIGIR 2023): seconds of a full pass over STS-B's test set, one text at a time."""

from collections.abc import Sequence

import numpy as np

from edgeembed_bench.formats import millions
from edgeembed_bench.paper_tables.base import PaperTable
from edgeembed_bench.paper_tables.measuring import opened
from edgeembed_bench.schedule import interleave_blocks
from edgeembed_bench.subjects import Subject

PASSES = 3
_WARMUP = 20
_TURN = 100


def simtde_table(
    subjects: Sequence[Subject],
    pairs: Sequence[tuple[str, str]],
    *,
    pairs_from: str,
    threads: int = 1,
    passes: int = PASSES,
    seed: int = 0,
) -> PaperTable:
    """Fill in table 4: the time of a pass over all pairs at batch size 1 on the CPU, the mean of three passes.

    Args:
        subjects: The rows; the first is what the others are compared with, as the paper's teacher is.
        pairs: Sentence pairs; both sentences of a pair are encoded, one by one.
        pairs_from: Where they come from.
        threads: Threads a subject; the paper does not say how many.
        passes: Over all pairs.
        seed: Decides the order of turns.

    Returns:
        The form, with the seconds of each pass.

    Raises:
        InputError: If there are no subjects, or names are not unique.
        CheckError: If a subject fails.
    """
    texts = [text for pair in pairs for text in pair]
    with opened(subjects, texts[0], threads, "simtde", "SimTDE, table 4: inference time comparison") as all_of_them:
        timers = {name: worker.times_ms for name, worker in all_of_them.workers.items()}
        timed = [
            interleave_blocks(timers, texts, warmup=_WARMUP, block=_TURN, seed=seed + number)
            for number in range(passes)
        ]
        pass_s = {name: [sum(each[name].timed_ms) / 1e3 for each in timed] for name in timers}
    means = {name: float(np.mean(seconds)) for name, seconds in pass_s.items()}
    first = means[subjects[0].name]
    rows = [
        (
            name,
            millions(all_of_them.facts[name].parameters),
            f"{means[name]:.2f} (x{first / means[name]:.1f})",
            " to ".join(f"{end:.2f}" for end in (min(pass_s[name]), max(pass_s[name]))),
        )
        for name in means
    ]
    return all_of_them.frame(
        columns=("model", "params", "time (seconds)", "fastest to slowest pass"),
        rows=tuple(rows),
        notes=(
            (
                f"a pass: both sentences of {len(pairs):,} pairs of {pairs_from}, one text a call, tokenizing "
                f"included; the mean of {passes} passes; {threads} thread(s)"
            ),
            f"subjects take turns of {_TURN} texts in a shuffled order",
        ),
        samples={name: {"pass_s": seconds} for name, seconds in pass_s.items()},
    )
