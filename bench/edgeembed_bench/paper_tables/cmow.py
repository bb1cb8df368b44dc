"""Table 5 of the bidirectional CMOW/CBOW-Hybrid paper: sentences a second, in batches of random sequences."""

from collections.abc import Mapping, Sequence

import numpy as np
from edgeembed_runtime.errors import InputError

from edgeembed_bench.formats import millions
from edgeembed_bench.paper_tables.base import PaperTable
from edgeembed_bench.paper_tables.measuring import opened
from edgeembed_bench.schedule import shuffled_orders
from edgeembed_bench.stats import Quartiles
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import Worker

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
    """Fill in table 5: encoding speed on random sequences of one length, without gradients.

    Args:
        subjects: The rows; the first that counts tokens decides which words have one.
        texts: Words are drawn from these.
        batches: How many; the paper's 1,024 take hours on a processor.
        batch_size: Sequences in each.
        tokens: Of each sequence.
        threads: Threads a subject.
        seed: Decides the words, and the order of turns.

    Returns:
        The form, with the time of each batch.

    Raises:
        InputError: If there are no subjects, names are not unique, or no subject counts tokens.
        CheckError: If a subject fails.
    """
    with opened(subjects, texts[0], threads, "cmow", "CMOW/CBOW-Hybrid, table 5: encoding speed") as all_of_them:
        words, around, counted_by = _single_token_words(all_of_them.workers, texts)
        random = np.random.default_rng(seed)
        times_ms: dict[str, list[float]] = {name: [] for name in all_of_them.workers}
        hidden = set()
        for names in shuffled_orders(times_ms, batches + 1, seed):
            drawn = random.choice(words, size=(batch_size, tokens - around))
            batch = [" ".join(row) for row in drawn]
            for name in names:
                worker = all_of_them.workers[name]
                times = worker.model_times_ms([batch])
                if times is None:
                    hidden.add(name)
                    times = worker.times_ms([batch])
                times_ms[name].extend(times)
    rows = []
    for name, times in times_ms.items():
        speed = Quartiles.of([batch_size / time * 1e3 for time in times[1:]])  # the first does not count
        quartiles = f"{speed.q1:,.0f} to {speed.q3:,.0f}"
        rows.append((name, millions(all_of_them.facts[name].parameters), f"{speed.median:,.0f}", quartiles))
    notes = [
        (
            f"{batches:,} batches (the paper: {BATCHES:,}) of {batch_size} random sequences of {tokens} tokens, "
            f"of words that are one token to {counted_by}; {threads} thread(s) of this processor (the paper: an "
            "A100)"
        ),
        "tokenizing is left out, as in the paper",
    ]
    if hidden:
        notes.append(f"tokenizing is included for {', '.join(sorted(hidden))}, which hide it")
    return all_of_them.frame(
        columns=("model", "# parameters", "encoding speed (sentences / second)", "quartiles"),
        rows=tuple(rows),
        notes=tuple(notes),
        samples={name: {"batch_ms": times[1:]} for name, times in times_ms.items()},
    )


def _single_token_words(workers: Mapping[str, Worker], texts: Sequence[str]) -> tuple[list[str], int, str]:
    """Give words of one token each, how many tokens a text has besides its words, and who counted them."""
    words = list(dict.fromkeys(" ".join(texts).split()))
    for name, worker in workers.items():
        counts = worker.count_tokens(["", *words])
        if counts is not None:
            around, *of_words = counts
            found = [word for word, count in zip(words, of_words, strict=True) if count == around + 1]
            if found:
                return found, around, name
    raise InputError("no subject tells how many tokens a text has; expected one that does, such as a bundle")
