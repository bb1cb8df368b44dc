"""Reading a corpus: clean, distinct sentences from any number of sources."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from edgeembed_runtime.errors import InputError

from edgeembed.arguments import check_integer
from edgeembed.corpus.deduplication import DistinctTexts
from edgeembed.corpus.filtering import MAX_CHARACTERS, MIN_CHARACTERS, CorpusCounts, TextFilter
from edgeembed.corpus.inputs import CorpusLike, TextSource, open_corpus
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


@dataclass(frozen=True)
class SentenceStream:
    """The sentences of a corpus that may be larger than memory.

    Attributes:
        counts: How many texts were read, kept and dropped.
    """

    counts: CorpusCounts
    _sentences: DistinctTexts | list[tuple[str, int]]

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self._sentences)

    def __iter__(self) -> Iterator[str]:
        """Yield clean, distinct sentences in the order of the sources."""
        return (text for text, _ in self._sentences)

    def with_domains(self) -> Iterator[tuple[str, int]]:
        """Yield each sentence with the index of its source."""
        return iter(self._sentences)


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

    Memory grows with the number of sentences returned, and not with the corpus: see `stream_corpus`.

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
        InputError: If a source cannot be read, a limit is not positive, no sentence is left, or the temporary files
            cannot be written.
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
    with stream_corpus(
        corpus,
        limit=limit,
        limit_per_source=limit_per_source,
        min_characters=min_characters,
        max_characters=max_characters,
        seed=seed,
    ) as sentences:
        domains = dict(sentences.with_domains())
        return Corpus(list(domains), sentences.counts, domains)


@contextlib.contextmanager
def stream_corpus(
    corpus: CorpusLike,
    *,
    limit: int | None = None,
    limit_per_source: int | None = None,
    min_characters: int = MIN_CHARACTERS,
    max_characters: int = MAX_CHARACTERS,
    seed: int = 0,
) -> Iterator[SentenceStream]:
    """Read a corpus of any size in bounded memory: a context manager with its distinct sentences.

    The texts are copied to temporary files to find the duplicates. Samples are uniform, of the distinct sentences
    (reservoir sampling), and are held in memory.

    Arguments and errors are those of `read_corpus`.
    """
    for name, maximum in (("limit", limit), ("limit_per_source", limit_per_source)):
        if maximum is not None:
            check_integer(name, maximum, minimum=1)
    sources = open_corpus(corpus)
    text_filter = TextFilter(min_characters, max_characters)
    with DistinctTexts(_clean(sources, text_filter)) as distinct:
        chosen = distinct if limit is limit_per_source is None else _sample(distinct, limit, limit_per_source, seed)
        counts = text_filter.counts(kept=len(chosen), duplicate=distinct.duplicates)
        if not chosen:
            names = ", ".join(source.name for source in sources[:3]) + (" and others" if len(sources) > 3 else "")
            raise InputError(
                f"{names} gave no usable sentence ({counts}); expected text of "
                f"{min_characters} to {max_characters} characters a line: use another corpus"
            )
        yield SentenceStream(counts, chosen)


def _clean(sources: Sequence[TextSource], text_filter: TextFilter) -> Iterator[tuple[str, int]]:
    for domain, source in enumerate(sources):
        for text in text_filter.clean(source.texts()):
            yield text, domain


def _sample(
    sentences: Iterable[tuple[str, int]], limit: int | None, limit_per_source: int | None, seed: int
) -> list[tuple[str, int]]:
    samples = (
        sample_stream(domain_sentences, limit_per_source, new_rng(f"{seed} {domain}"))
        for domain, domain_sentences in itertools.groupby(sentences, key=itemgetter(1))
    )
    return list(sample_stream(itertools.chain.from_iterable(samples), limit, new_rng(seed)))
