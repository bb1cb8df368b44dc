"""Reading a corpus: clean, distinct sentences from any number of sources."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from edgeembed_runtime.errors import InputError

from edgeembed.arguments import check_integer
from edgeembed.corpus.filtering import MAX_CHARACTERS, MIN_CHARACTERS, CorpusCounts, TextFilter
from edgeembed.corpus.inputs import CorpusLike, open_corpus
from edgeembed.corpus.sampling import new_rng, sample_stream


@dataclass(frozen=True)
class Corpus:
    """The sentences of a corpus.

    Attributes:
        sentences: Clean, distinct sentences in the order of the sources.
        counts: How many texts were read, kept and dropped.
        domains: The index of the source of each sentence. The sentences of one file form a domain.
    """

    sentences: list[str]
    counts: CorpusCounts
    domains: dict[str, int]


def read_corpus(
    corpus: CorpusLike,
    *,
    limit: int | None = None,
    limit_per_source: int | None = None,
    min_characters: int = MIN_CHARACTERS,
    max_characters: int = MAX_CHARACTERS,
    seed: int = 0,
) -> list[str]:
    """Return the distinct sentences of a corpus; `gather_corpus` also returns the counts.

    Args:
        corpus: Files, folders, texts in memory or a dataset; see `edgeembed.corpus.inputs.open_corpus`.
        limit: The maximum number of sentences, a random sample of all. None keeps all.
        limit_per_source: The maximum number of sentences of each file, a random sample of it. None keeps all.
        min_characters: Drop shorter texts, after runs of white space are replaced by single spaces.
        max_characters: Drop longer texts.
        seed: The seed of the samples. Sentences stay in the order of the sources.

    Returns:
        Distinct sentences; runs of white space are replaced by single spaces.

    Raises:
        InputError: If a source cannot be read, a limit is not positive, or no sentence is left.
    """
    return gather_corpus(
        corpus,
        limit=limit,
        limit_per_source=limit_per_source,
        min_characters=min_characters,
        max_characters=max_characters,
        seed=seed,
    ).sentences


def gather_corpus(
    corpus: CorpusLike,
    *,
    limit: int | None = None,
    limit_per_source: int | None = None,
    min_characters: int = MIN_CHARACTERS,
    max_characters: int = MAX_CHARACTERS,
    seed: int = 0,
) -> Corpus:
    """Return the distinct sentences of a corpus and count what was dropped.

    Arguments and errors are those of `read_corpus`.
    """
    for name, maximum in (("limit", limit), ("limit_per_source", limit_per_source)):
        if maximum is not None:
            check_integer(name, maximum, minimum=1)
    sources = open_corpus(corpus)
    text_filter = TextFilter(min_characters, max_characters)
    samples = (
        _with_domain(
            sample_stream(
                text_filter.deduplicate(text_filter.clean(source.texts())),
                limit_per_source,
                new_rng(f"{seed} {domain}"),
            ),
            domain,
        )
        for domain, source in enumerate(sources)
    )
    domains = dict(sample_stream(itertools.chain.from_iterable(samples), limit, new_rng(seed)))
    sentences = list(domains)
    counts = text_filter.counts(kept=len(sentences))
    if not sentences:
        names = ", ".join(source.name for source in sources[:3]) + (" and others" if len(sources) > 3 else "")
        raise InputError(
            f"{names} gave no usable sentence ({counts}); expected text of "
            f"{min_characters} to {max_characters} characters a line: use another corpus"
        )
    return Corpus(sentences, counts, domains)


def _with_domain(texts: Iterable[str], domain: int) -> Iterator[tuple[str, int]]:
    for text in texts:
        yield text, domain
