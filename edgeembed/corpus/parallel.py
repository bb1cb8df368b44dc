"""Parallel text: sentences and their translations into any number of languages."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.deduplication import DistinctTexts
from edgeembed.corpus.remote import AnyPath
from edgeembed.corpus.sampling import new_rng
from edgeembed.corpus.sources import find_sources
from edgeembed.corpus.tables import read_columns, read_header

COLUMNS = ("sentence", "translation", "language")
"""The columns of a file with several languages."""


@dataclass(frozen=True)
class LanguageCounts:
    """The number of pairs of one language.

    Attributes:
        language: The language's name in the file.
        read: Pairs read.
        kept: Distinct pairs with both sides of a suitable length, within the limit.
        sampled: Pairs in an epoch. It exceeds `kept` if some occur more than once.
    """

    language: str
    read: int
    kept: int
    sampled: int

    def __str__(self) -> str:
        """Return the counts in one line."""
        return f"{self.language}: {self.read:,} pairs read, {self.kept:,} kept, {self.sampled:,} an epoch"


@dataclass(frozen=True)
class ParallelText:
    """Sentences and their translations, as often as an epoch has them.

    Attributes:
        sources: The sentences.
        translations: The translation of each sentence.
        languages: The number of pairs of each language.
        files: The files or folders that the pairs were read from.
    """

    sources: list[str]
    translations: list[str]
    languages: tuple[LanguageCounts, ...]
    files: tuple[str, ...]


def read_parallel(
    sources: Sequence[str | Path],
    *,
    limit: int = 0,
    smoothing: float = 1.0,
    min_characters: int = 1,
    max_characters: int = 1000,
    seed: int = 0,
) -> ParallelText:
    """Read sentences and their translations, and sample the languages by exponential smoothing.

    A language with a share n of the largest language's pairs contributes n ** smoothing of them (Conneau et al. 2020,
    section 3.1), scaled so that every pair is used at least once.

    Memory grows with the pairs returned, and not with those read: see `DistinctTexts`.

    Args:
        sources: TSV or CSV files with a header, plain or compressed, or folders of them: `en-de.tsv` with the columns
            `en` and `de`, the first of which the teacher reads; or any file with `sentence`, `translation` and
            `language`. `#column1,column2` after a path names the first two columns and optionally the third. Without
            a third one, the language is named after the second.
        limit: The maximum number of pairs of each language, a random sample; 0 for all.
        smoothing: The exponent, 0 to 1.
        min_characters: Drop pairs with a shorter side, after runs of white space are replaced by single spaces.
        max_characters: Drop pairs with a longer side.
        seed: The seed of the samples.

    Returns:
        The pairs, language by language.

    Raises:
        InputError: If a file cannot be read or lacks the columns, no pair is left, or the temporary files cannot be
            written.
    """
    read: Counter[str] = Counter()
    with DistinctTexts(_usable_pairs(sources, read, min_characters, max_characters)) as distinct:
        limited = _limit(distinct, read, limit, seed)
    largest = max(map(len, limited.values()), default=0)
    if not largest:
        names = ", ".join(map(str, sources))
        raise InputError(
            f"{names} gave no usable pair of {read.total():,} read; expected texts of {min_characters} to "
            f"{max_characters} characters: use other files"
        )
    sampled: list[tuple[str, str]] = []
    counts = []
    for language, rows in limited.items():
        count = round(largest * (len(rows) / largest) ** smoothing) if rows else 0
        sampled += _repeat(rows, count, f"{seed} {language} again")
        counts.append(LanguageCounts(language, read[language], len(rows), count))
    sentences, translations = ([pair[side] for pair in sampled] for side in (0, 1))
    return ParallelText(sentences, translations, tuple(counts), tuple(map(str, sources)))


def _usable_pairs(
    sources: Sequence[str | Path], read: Counter[str], min_characters: int, max_characters: int
) -> Iterator[tuple[str, int]]:
    """Yield the pairs of a suitable length as single texts, and count the pairs read of each language."""
    for source in find_sources(sources):
        for sentence, translation, language in _read_file(source.path, source.columns):
            read[language] += 1
            if all(min_characters <= len(text) <= max_characters for text in (sentence, translation)):
                yield f"{language}\t{sentence}\t{translation}", 0


def _limit(
    distinct: DistinctTexts, languages: Iterable[str], limit: int, seed: int
) -> dict[str, list[tuple[str, str]]]:
    """Return the distinct pairs of each language, or a sample of them."""
    found = Counter(_split(text)[0] for text, _ in distinct)
    chosen = {
        language: set(new_rng(f"{seed} {language}").sample(range(count), limit))
        for language, count in found.items()
        if 0 < limit < count
    }
    limited: dict[str, list[tuple[str, str]]] = {language: [] for language in languages}
    rows: Counter[str] = Counter()
    for text, _ in distinct:
        language, sentence, translation = _split(text)
        if language not in chosen or rows[language] in chosen[language]:
            limited[language].append((sentence, translation))
        rows[language] += 1
    return limited


def _split(text: str) -> list[str]:
    return text.rsplit("\t", 2)  # the white space in a sentence is single spaces


def _read_file(path: AnyPath, requested: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    columns = requested or _default_columns(path)
    if len(columns) not in (2, 3):
        raise InputError(f"{path}#{','.join(columns)} names {len(columns)} columns; expected {_expected()}")
    for number, fields in read_columns(path, columns):
        sentence, translation, *rest = (" ".join(field.split()) for field in fields)
        language = rest[0] if rest else columns[1]
        if not language:
            raise InputError(f"{path} line {number} has no language; expected one in every row")
        yield sentence, translation, language


def _default_columns(path: AnyPath) -> tuple[str, ...]:
    header = read_header(path)
    languages = tuple(path.name.partition(".")[0].split("-", 1))
    for columns in (languages, COLUMNS):
        if len(columns) > 1 and set(columns) <= set(header):
            return columns
    raise InputError(f"{path} has the columns {', '.join(header)}; expected {_expected()}")


def _expected() -> str:
    return (
        f"en-de.tsv with en and de, or a TSV or CSV with {', '.join(COLUMNS)}: choose with PATH#sentence,translation "
        "or PATH#sentence,translation,language"
    )


def _repeat(pairs: list[tuple[str, str]], count: int, seed: str) -> list[tuple[str, str]]:
    """Return `count` pairs: each as often as fits evenly, then a sample for the rest."""
    times, rest = divmod(count, len(pairs)) if pairs else (0, 0)
    return pairs * times + _sample(pairs, rest, seed)


def _sample(pairs: list[tuple[str, str]], count: int, seed: str) -> list[tuple[str, str]]:
    return [pairs[row] for row in sorted(new_rng(seed).sample(range(len(pairs)), count))]
