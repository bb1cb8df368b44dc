"""Text of several languages: how much there is of each, and a sample in which the small ones have more say."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.distinct_sample import DistinctSample
from edgeembed.corpus.reading import held_out_count
from edgeembed.corpus.sieve import CorpusCounts, Sieve
from edgeembed.corpus.sources import STANDARD_INPUT, find_sources, split_columns

SAMPLE_SIZE = 1_000_000
"""Sentences of all languages together: more of them move few tokens, and a machine has the memory for these."""

_LABEL = re.compile(r"[A-Za-z][\w-]*")
MOST_HELD_OUT = 2000
"""Sentences of a language, or of a corpus without languages, that a vocabulary is measured on, at the most."""


@dataclass(frozen=True)
class LanguageSample:
    """What was drawn of a language.

    Attributes:
        language: Its label.
        text_sentences: Sentences in the text, repeated ones included.
        text_share: Their share of the text of all languages, 0 to 1.
        sample_share: The language's share of the sample, which is that share smoothed, 0 to 1.
        sentences: Distinct sentences to train on, in random order.
        uses: How many sentences training sees: fewer than there are, or more, some of them again.
        held_out: Other distinct sentences, to measure on.
    """

    language: str
    text_sentences: int
    text_share: float
    sample_share: float
    sentences: list[str]
    uses: int
    held_out: list[str]

    @property
    def training(self) -> list[str]:
        """The sentences that training sees, as many as `uses` says."""
        return list(islice(cycle(self.sentences), self.uses))


@dataclass(frozen=True)
class LanguageCorpus:
    """Samples of several languages and the account of how they were gathered.

    Attributes:
        languages: One sample a language, in the order in which they were given.
        counts: What became of the texts that were read. A text that equals another is only known as a duplicate while
            the other is at hand; else it counts as not sampled.
    """

    languages: tuple[LanguageSample, ...]
    counts: CorpusCounts


def split_language(name: str) -> tuple[str | None, str]:
    """Split `LANGUAGE=SOURCE`; without a language where there is none, or a file is called so."""
    label, mark, source = name.partition("=")
    if not mark or not _LABEL.fullmatch(label) or split_columns(name)[0].exists():
        return None, name
    return label, source


def label_languages(given: Sequence[str]) -> dict[str, list[str]]:
    """Give the sources of each language, as a user labelled them.

    Args:
        given: Sources as `find_sources` takes them, all or none with a label: `de=news.txt`.

    Returns:
        Sources by language; empty where none is labelled.

    Raises:
        InputError: If only some are labelled.
    """
    labelled = [split_language(name) for name in given]
    languages: dict[str, list[str]] = {}
    for language, source in labelled:
        if language is not None:
            languages.setdefault(language, []).append(source)
    bare = [source for language, source in labelled if language is None]
    if languages and bare:
        raise InputError(
            f"{bare[0]} has no language and other text has; expected a label before every source: en={bare[0]}"
        )
    return languages


def smoothed_shares(counts: Mapping[str, int], exponent: float) -> dict[str, float]:
    """Give each language's share, exponentiated and renormalised as for multilingual BERT.

    Args:
        counts: How much text there is of each language, above 0.
        exponent: 1 keeps the shares, 0 makes them equal, 0.7 is the choice of multilingual BERT and of Xayn's paper
            (section 5.1).

    Raises:
        InputError: If the exponent is not from 0 to 1.
    """
    if not 0 <= exponent <= 1:
        raise InputError(f"the smoothing exponent is {exponent:g}; expected 0, which makes shares equal, to 1")
    total = sum(counts.values())
    powers = {language: (count / total) ** exponent for language, count in counts.items()}
    return {language: power / sum(powers.values()) for language, power in powers.items()}


def sample_languages(
    sources: Mapping[str, Sequence[str]], *, smoothing: float, size: int = SAMPLE_SIZE, seed: int = 0
) -> LanguageCorpus:
    """Draw a sample in which each language has its smoothed share.

    The text is read twice, once to count and once to draw, and never held: memory grows with `size` and the number of
    languages, not with the text. Of each language one distinct sentence in ten, 2,000 at the most, is held out; which
    those are depends on the seed alone where there are more than 20,000 to draw from. The sample is as large as the
    sentences that are left, all languages together, and a language that has too few for its share gives some twice or
    oftener, as in multilingual BERT's training.

    Args:
        sources: The sources of each language, as `find_sources` takes them; no standard input, which cannot be read
            twice.
        smoothing: The exponent of the shares, see `smoothed_shares`.
        size: The most sentences that training sees.
        seed: Decides the sample.

    Raises:
        InputError: If a source cannot be read, a language has no usable sentence, or `size` is below the number of
            languages, or `smoothing` is not from 0 to 1.
    """
    _expect_usable(sources, size)
    sieves = {language: _count(language, names) for language, names in sources.items()}
    found = {language: sieve.passed for language, sieve in sieves.items()}
    shares = smoothed_shares(found, smoothing)
    samples = {
        language: _draw(names, round(size * shares[language]) + 1 + MOST_HELD_OUT, seed)
        for language, names in sources.items()
    }
    drawn = {language: _hold_out(sample.texts()) for language, sample in samples.items()}
    total = min(size, sum(len(training) for training, _ in drawn.values()))
    languages = tuple(
        LanguageSample(
            language,
            text_sentences=found[language],
            text_share=found[language] / sum(found.values()),
            sample_share=shares[language],
            sentences=training,
            uses=max(1, round(total * shares[language])),
            held_out=held_out,
        )
        for language, (training, held_out) in drawn.items()
    )
    counts = [
        sieve.counts(kept=len(samples[language]), duplicate=samples[language].duplicates)
        for language, sieve in sieves.items()
    ]
    return LanguageCorpus(languages, _sum(counts))


def _expect_usable(sources: Mapping[str, Sequence[str]], size: int) -> None:
    if size < len(sources):
        raise InputError(f"a sample of {size} sentences was asked for; expected at least one of each language")
    for language, names in sources.items():
        if STANDARD_INPUT in names:
            raise InputError(
                f"the text of language {language} comes from standard input, which can be read once; "
                "expected files or folders, because text of several languages is read twice"
            )


def _count(language: str, sources: Sequence[str]) -> Sieve:
    sieve = Sieve()
    for _ in _sentences(sources, sieve):
        pass
    if not sieve.passed:
        raise InputError(f"the text of language {language} has no usable sentence; expected one or more")
    return sieve


def _draw(sources: Sequence[str], count: int, seed: int) -> DistinctSample:
    sample = DistinctSample(count, seed)
    sample.read(_sentences(sources, Sieve()))
    return sample


def _sentences(sources: Sequence[str], sieve: Sieve) -> Iterator[str]:
    for source in find_sources(sources):
        yield from sieve.clean(source.texts())


def _hold_out(texts: list[str]) -> tuple[list[str], list[str]]:
    count = held_out_count(len(texts), MOST_HELD_OUT)
    return texts[count:], texts[:count]


def _sum(counts: Sequence[CorpusCounts]) -> CorpusCounts:
    each = [count.to_dict() for count in counts]
    return CorpusCounts(**{name: sum(count[name] for count in each) for name in each[0]})
