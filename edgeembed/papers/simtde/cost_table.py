"""Table 4 of SimTDE: seconds of a pass over a test set, one text at a time.

A command: `python -m edgeembed.papers.simtde.cost_table SUBJECT... --sts stsb-test.tsv`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from edgeembed_bench.render.tables import millions
from edgeembed_bench.schedule import interleave_blocks
from edgeembed_bench.subjects import Subject

from edgeembed.cli.main import main
from edgeembed.corpus.pairs import read_sts
from edgeembed.papers.cost_table import PaperTable, check_counts, cost_options, open_subjects, print_table

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


@click.command()
@cost_options
@click.option("--sts", required=True, metavar="FILE", help="Scored sentence pairs; STS-B's test set in the paper.")
def command(
    models: tuple[str, ...], against: tuple[str, ...], threads: int, seed: int, sts: str, **output: Any
) -> None:
    """Measure table 4 of SimTDE: seconds of a pass over all pairs, one text at a time."""
    from edgeembed.benchmarking import find_subjects

    def measure() -> PaperTable:
        pairs, subjects = read_sts(Path(sts)), find_subjects([*models, *against])
        both = list(zip(pairs.first, pairs.second, strict=True))
        return simtde_table(subjects, both, pairs_from=pairs.name, threads=threads, seed=seed)

    print_table(measure, inputs=[sts], **output)


if __name__ == "__main__":
    main(command=command)
