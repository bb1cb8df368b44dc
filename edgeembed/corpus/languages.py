"""Corpora of several languages, sampled with exponentially smoothed shares."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.filtering import CorpusCounts, TextFilter
from edgeembed.corpus.inputs import CorpusLike, TextSource, holds_texts, open_corpus
from edgeembed.corpus.remote import AnyPath, to_path
from edgeembed.corpus.sampling import DistinctSample, held_out_count
from edgeembed.corpus.sources import STANDARD_INPUT, is_source

SAMPLE_SIZE = 1_000_000
"""Default number of sentences of all languages together: more hardly change a vocabulary and need more memory."""

MAX_HELD_OUT = 2000
"""Maximum number of held-out sentences of a language, or of a corpus without languages, that measure a vocabulary."""

_LABEL = re.compile(r"[A-Za-z][\w-]*")


@dataclass(frozen=True)
class LanguageSample:
    """The sample of one language.

    Attributes:
        language: The language's label.
        text_sentences: Sentences in the language's text, duplicates included.
        text_share: Their share of the text of all languages, 0 to 1.
        sample_share: The language's share of the sample: `text_share` after smoothing, 0 to 1.
        sentences: Distinct training sentences in random order.
        uses: The number of sentences used for training. It is smaller than the number of sentences, or larger if some
            are used more than once.
        held_out: Distinct sentences that are not used for training.
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
        """The sentences used for training, `uses` of them; small languages repeat."""
        return list(islice(cycle(self.sentences), self.uses))


@dataclass(frozen=True)
class LanguageCorpus:
    """Samples of several languages.

    Attributes:
        languages: One sample for each language, in the order given.
        counts: How many texts were read, kept and dropped. A duplicate of a text that is no longer in memory counts as
            not sampled.
    """

    languages: tuple[LanguageSample, ...]
    counts: CorpusCounts


def split_language(name: str) -> tuple[str | None, str]:
    """Split `LANGUAGE=SOURCE` into the language and the source.

    Args:
        name: A source, perhaps with a language. If a file or folder has exactly this name, it has no language.

    Returns:
        The language and the source; the language is None if none is given.
    """
    label, mark, source = name.partition("=")
    if not mark or not _LABEL.fullmatch(label) or is_source(name):
        return None, name
    return label, source


def label_languages(corpus: CorpusLike) -> dict[str, list[AnyPath]]:
    """Return the sources of each language of a corpus whose sources are labeled: `de=news.txt`.

    Args:
        corpus: See `edgeembed.corpus.inputs.open_corpus`; of its sources all or none have a label.

    Returns:
        The sources by language; empty if none is labeled, or the corpus is not a list of sources.

    Raises:
        InputError: If only some are labeled.
    """
    if isinstance(corpus, str | os.PathLike):
        corpus = [corpus]
    if not isinstance(corpus, list | tuple) or not all(isinstance(item, str | os.PathLike) for item in corpus):
        return {}
    labeled = [split_language(os.fspath(item)) for item in corpus]
    if all(isinstance(item, str) for item in corpus) and holds_texts([source for _, source in labeled]):
        return {}
    languages: dict[str, list[AnyPath]] = {}
    for language, source in labeled:
        if language is not None:
            languages.setdefault(language, []).append(to_path(source))
    unlabeled = [source for language, source in labeled if language is None]
    if languages and unlabeled:
        raise InputError(
            f"{unlabeled[0]} has no language but other sources have; expected a label before every source: "
            f"en={unlabeled[0]}"
        )
    return languages


def smoothed_shares(counts: Mapping[str, int], exponent: float) -> dict[str, float]:
    """Return each language's share of the text, exponentiated and renormalized as for multilingual BERT.

    Args:
        counts: The amount of text in each language, more than 0.
        exponent: 1 keeps the shares, 0 makes them equal. Multilingual BERT and Xayn's paper (section 5.1) use 0.7.

    Raises:
        InputError: If the exponent is not from 0 to 1.
    """
    if not 0 <= exponent <= 1:
        raise InputError(f"the smoothing exponent is {exponent:g}; expected 0, which makes shares equal, to 1")
    total = sum(counts.values())
    powers = {language: (count / total) ** exponent for language, count in counts.items()}
    return {language: power / sum(powers.values()) for language, power in powers.items()}


def sample_languages(
    corpora: Mapping[str, CorpusLike], *, smoothing: float, size: int = SAMPLE_SIZE, seed: int = 0
) -> LanguageCorpus:
    """Sample several languages, each with its smoothed share.

    The text is read twice, once to count and once to sample, and is never held in memory: memory grows with `size` and
    the number of languages, not with the text. One distinct sentence in ten of each language, at most 2,000, is held
    out. With more than 20,000 sentences to choose from, the held-out ones depend on the seed alone. The sample is as
    large as the remaining sentences of all languages together. A language with fewer sentences than its share uses
    some more than once, as in the training of multilingual BERT.

    Args:
        corpora: The corpus of each language, see `edgeembed.corpus.inputs.open_corpus`. Standard input is an error,
            because it cannot be read twice.
        smoothing: The exponent of the shares, see `smoothed_shares`.
        size: The maximum number of training sentences of all languages together.
        seed: The seed of the sample.

    Raises:
        InputError: If a source cannot be read, a language has no usable sentence, or `size` is below the number of
            languages, or `smoothing` is not from 0 to 1.
    """
    sources = {language: open_corpus(corpus) for language, corpus in corpora.items()}
    _expect_usable(sources, size)
    filters = {language: _count(language, names) for language, names in sources.items()}
    found = {language: text_filter.passed for language, text_filter in filters.items()}
    shares = smoothed_shares(found, smoothing)
    samples = {
        language: _draw(names, round(size * shares[language]) + 1 + MAX_HELD_OUT, seed)
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
        text_filter.counts(kept=len(samples[language]), duplicate=samples[language].duplicates)
        for language, text_filter in filters.items()
    ]
    return LanguageCorpus(languages, _sum(counts))


def _expect_usable(sources: Mapping[str, Sequence[TextSource]], size: int) -> None:
    if size < len(sources):
        raise InputError(f"the sample size is {size}; expected at least {len(sources)}, one sentence of each language")
    for language, opened in sources.items():
        if any(source.name == STANDARD_INPUT for source in opened):
            raise InputError(
                f"the text of language {language} comes from standard input, which can be read only once; "
                "expected files or folders, because text of several languages is read twice"
            )


def _count(language: str, sources: Sequence[TextSource]) -> TextFilter:
    text_filter = TextFilter()
    for _ in _sentences(sources, text_filter):
        pass
    if not text_filter.passed:
        raise InputError(f"the text of language {language} has no usable sentence; expected at least one")
    return text_filter


def _draw(sources: Sequence[TextSource], count: int, seed: int) -> DistinctSample:
    sample = DistinctSample(count, seed)
    sample.read(_sentences(sources, TextFilter()))
    return sample


def _sentences(sources: Sequence[TextSource], text_filter: TextFilter) -> Iterator[str]:
    for source in sources:
        yield from text_filter.clean(source.texts())


def _hold_out(texts: list[str]) -> tuple[list[str], list[str]]:
    count = held_out_count(len(texts), MAX_HELD_OUT)
    return texts[count:], texts[:count]


def _sum(counts: Sequence[CorpusCounts]) -> CorpusCounts:
    each = [count.to_dict() for count in counts]
    return CorpusCounts(**{name: sum(count[name] for count in each) for name in each[0]})
