"""Table 5 of bidirectional CMOW: sentences per second on random sequences.

A command: `python -m edgeembed.papers.cmow.cost_table SUBJECT...`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import click
import numpy as np
from edgeembed_bench.render.tables import millions
from edgeembed_bench.schedule import shuffled_orders
from edgeembed_bench.stats import Quartiles
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import Worker
from edgeembed_runtime.errors import InputError

from edgeembed.cli.main import main
from edgeembed.papers.cost_table import PaperTable, check_counts, cost_options, open_subjects, print_table

BATCHES = 1024
BATCH_SIZE = 256
TOKENS = 64


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


@click.command()
@cost_options
@click.option("--texts", metavar="FILE", help="Texts from which words are drawn.  [default: Python's docstrings]")
@click.option("--batches", default=BATCHES, show_default=True, type=click.IntRange(min=1), help="Number of batches.")
def command(
    models: tuple[str, ...],
    texts: str | None,
    batches: int,
    against: tuple[str, ...],
    threads: int,
    seed: int,
    **output: Any,
) -> None:
    """Measure table 5 of CMOW: sentences per second in batches of 256 random sequences of 64 tokens."""
    from edgeembed.benchmarking import find_subjects, read_texts

    def measure() -> PaperTable:
        sentences, _ = read_texts(texts)
        return cmow_table(find_subjects([*models, *against]), sentences, batches=batches, threads=threads, seed=seed)

    print_table(measure, inputs=[] if texts is None else [texts], **output)


if __name__ == "__main__":
    main(command=command)
