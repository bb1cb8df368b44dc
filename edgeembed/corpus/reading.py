"""A corpus: clean, distinct sentences from any number of sources."""

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.sieve import MAX_CHARACTERS, MIN_CHARACTERS, CorpusCounts, Sieve
from edgeembed.corpus.sources import find_sources

T = TypeVar("T")

_HELD_OUT_SHARE = 0.1


@dataclass(frozen=True)
class Corpus:
    """Sentences and the account of how they were gathered.

    Attributes:
        sentences: One clean sentence an entry, distinct, in the order of the sources.
        counts: What became of the texts that were read.
        domains: The source of each sentence, by number: sentences of one file are of one domain.
    """

    sentences: list[str]
    counts: CorpusCounts
    domains: dict[str, int]


def read_corpus(
    sources: Sequence[str | Path],
    *,
    limit: int | None = None,
    limit_per_source: int | None = None,
    min_characters: int = MIN_CHARACTERS,
    max_characters: int = MAX_CHARACTERS,
    seed: int = 0,
) -> list[str]:
    """Give the distinct sentences of a corpus; `gather_corpus` gives the counts too.

    Args:
        sources: Files (.txt, .tsv, .csv, .jsonl, .parquet; all but the last also with .xz, .gz, .zst), folders of
            such files, `-` for standard input, `pydoc:` for Python's documentation (`pydoc:stdlib` for the standard
            library's, `pydoc:json,numpy` for that of some modules); `#column1,column2` after a path chooses columns
            of its tables.
        limit: The most sentences to keep, a random sample of all; none: keep all.
        limit_per_source: The most sentences to keep of one file, a random sample of it; none: keep all.
        min_characters: Drop what is shorter, once white space is folded.
        max_characters: Drop what is longer.
        seed: Decides the samples; the order of the sentences is that of the sources.

    Returns:
        One sentence an entry, white space folded to single spaces, no two equal.

    Raises:
        InputError: If a source cannot be read, a limit is not positive, or no sentence is left.
    """
    return gather_corpus(
        sources,
        limit=limit,
        limit_per_source=limit_per_source,
        min_characters=min_characters,
        max_characters=max_characters,
        seed=seed,
    ).sentences


def gather_corpus(
    sources: Sequence[str | Path],
    *,
    limit: int | None = None,
    limit_per_source: int | None = None,
    min_characters: int = MIN_CHARACTERS,
    max_characters: int = MAX_CHARACTERS,
    seed: int = 0,
) -> Corpus:
    """Give the distinct sentences of a corpus and what was dropped on the way.

    Args and errors are those of `read_corpus`.
    """
    _expect_positive(limit=limit, limit_per_source=limit_per_source)
    if not sources:
        raise InputError("no corpus was given; expected at least one file, folder, - or pydoc:")
    sieve = Sieve(min_characters, max_characters)
    samples = (
        _numbered(
            _sample(sieve.distinct(sieve.clean(source.texts())), limit_per_source, _generator(f"{seed} {index}")), index
        )
        for index, source in enumerate(find_sources(sources))
    )
    domains = dict(_sample(itertools.chain.from_iterable(samples), limit, _generator(seed)))
    sentences = list(domains)
    counts = sieve.counts(kept=len(sentences))
    if not sentences:
        names = ", ".join(map(str, sources))
        raise InputError(
            f"{names} gave no usable sentence ({counts}); expected text of "
            f"{min_characters} to {max_characters} characters a line: give another corpus"
        )
    return Corpus(sentences, counts, domains)


def held_out_count(sentences: int, most: int) -> int:
    """Return how many sentences of a corpus to hold out: a tenth of them, so that a small corpus trains too.

    Args:
        sentences: How many distinct sentences the corpus has.
        most: The most to hold out of a large corpus.
    """
    return min(most, int(sentences * _HELD_OUT_SHARE))


def split_holdout(sentences: Sequence[str], count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Give the sentences in two parts: to train on, and held out.

    Args:
        sentences: Distinct sentences.
        count: How many to hold out, a random sample.
        seed: Decides the sample.

    Returns:
        The sentences to train on and the held-out ones, both in their old order.

    Raises:
        InputError: If `count` leaves nothing to train on or is negative.
    """
    if not 0 <= count < len(sentences):
        raise InputError(
            f"{count} of {len(sentences)} sentences cannot be held out; "
            f"expected 0 to {max(len(sentences) - 1, 0)}: hold out fewer (corpus.heldout) or give a larger corpus"
        )
    held = set(_generator(seed).sample(range(len(sentences)), count))
    train = [text for index, text in enumerate(sentences) if index not in held]
    return train, [sentences[index] for index in sorted(held)]


def _sample(texts: Iterable[T], count: int | None, rng: random.Random) -> Iterable[T]:
    """Draw a uniform sample in one pass (reservoir sampling; Vitter 1985, algorithm R), in the old order."""
    if count is None:
        return texts
    kept: list[tuple[int, T]] = []
    for index, text in enumerate(texts):
        if index < count:
            kept.append((index, text))
        elif (slot := rng.randrange(index + 1)) < count:
            kept[slot] = (index, text)
    return [text for _, text in sorted(kept, key=lambda each: each[0])]


def _numbered(texts: Iterable[str], number: int) -> Iterator[tuple[str, int]]:
    for text in texts:
        yield text, number


def _generator(seed: int | str) -> random.Random:
    return random.Random(seed)  # noqa: S311  # no secret depends on it


def _expect_positive(**limits: int | None) -> None:
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise InputError(f"{name} is {limit}; expected at least 1, or none to keep all")
