"""Parallel text: sentences and their translations into any number of languages."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.sources import find_sources
from edgeembed.corpus.tables import read_rows, read_table

COLUMNS = ("sentence", "translation", "language")
"""What the columns are called in a file of several languages."""


@dataclass(frozen=True)
class LanguageCounts:
    """What became of a language's pairs.

    Attributes:
        language: What the file calls it.
        read: Pairs read.
        kept: Distinct pairs, neither side too short or too long, within the limit.
        sampled: How many of them an epoch has; more than there are where some come more than once.
    """

    language: str
    read: int
    kept: int
    sampled: int

    def __str__(self) -> str:
        """Give the counts in one line of plain words."""
        return f"{self.language}: {self.read:,} pairs read, {self.kept:,} kept, {self.sampled:,} an epoch"


@dataclass(frozen=True)
class ParallelText:
    """Sentences and their translations, as often as an epoch has them.

    Attributes:
        sources: The sentences.
        translations: The translation of each.
        languages: What became of each language's pairs.
        files: Where they are from.
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
    """Read sentences and their translations, and draw from the languages in smoothed shares.

    A language with a share n of the largest one's pairs gives n ** smoothing of them: the exponential smoothing of
    multilingual corpora (Conneau et al. 2020, section 3.1), scaled so that no pair is left out.

    Args:
        sources: TSV or CSV files with a header, plain or compressed, or folders of them: `en-de.tsv` with the columns
            `en` and `de`, the first of them what the teacher reads; or any with `sentence`, `translation`, `language`.
            `#column1,column2` after a path chooses the former two, and perhaps the latter; without it a language is
            called as its column.
        limit: Most pairs of each language, a random sample; 0 for all.
        smoothing: The exponent, 0 to 1.
        min_characters: Pairs with a shorter side are dropped, once white space is folded.
        max_characters: Pairs with a longer side are dropped.
        seed: Decides the samples.

    Returns:
        The pairs, language by language.

    Raises:
        InputError: If a file cannot be read or has no such columns, or no pair is left.
    """
    read: dict[str, int] = {}
    kept: dict[str, dict[tuple[str, str], None]] = {}
    for source in find_sources(sources):
        for sentence, translation, language in _rows(Path(source.name), source.columns):
            read[language] = read.get(language, 0) + 1
            pairs = kept.setdefault(language, {})
            if all(min_characters <= len(text) <= max_characters for text in (sentence, translation)):
                pairs[sentence, translation] = None
    limited = {language: _limited(list(pairs), limit, f"{seed} {language}") for language, pairs in kept.items()}
    most = max(map(len, limited.values()), default=0)
    if not most:
        names = ", ".join(map(str, sources))
        raise InputError(
            f"{names} gave no usable pair of {sum(read.values()):,} read; expected texts of {min_characters} to "
            f"{max_characters} characters: give other files"
        )
    drawn: list[tuple[str, str]] = []
    counts = []
    for language, rows in limited.items():
        wanted = round(most * (len(rows) / most) ** smoothing) if rows else 0
        drawn += _repeated(rows, wanted, f"{seed} {language} again")
        counts.append(LanguageCounts(language, read[language], len(rows), wanted))
    given, translated = ([pair[side] for pair in drawn] for side in (0, 1))
    return ParallelText(given, translated, tuple(counts), tuple(map(str, sources)))


def _rows(path: Path, asked: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    columns = asked or _named(path)
    if len(columns) not in (2, 3):
        raise InputError(f"{path}#{','.join(columns)} names {len(columns)} columns; expected {_expected()}")
    fields = read_table(path, columns)
    for row in zip(*[fields] * len(columns), strict=True):
        sentence, translation, *rest = (" ".join(field.split()) for field in row)
        language = rest[0] if rest else columns[1]
        if not language:
            raise InputError(f"{path} has a pair without a language ({sentence[:40]!r}); expected one in every row")
        yield sentence, translation, language


def _named(path: Path) -> tuple[str, ...]:
    _, header = next(read_rows(path), (0, []))
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


def _limited(pairs: list[tuple[str, str]], limit: int, seed: str) -> list[tuple[str, str]]:
    return _sampled(pairs, limit, seed) if 0 < limit < len(pairs) else pairs


def _repeated(pairs: list[tuple[str, str]], count: int, seed: str) -> list[tuple[str, str]]:
    times, rest = divmod(count, len(pairs)) if pairs else (0, 0)
    return pairs * times + _sampled(pairs, rest, seed)


def _sampled(pairs: list[tuple[str, str]], count: int, seed: str) -> list[tuple[str, str]]:
    draw = random.Random(seed)  # noqa: S311  # no secret depends on it
    return [pairs[row] for row in sorted(draw.sample(range(len(pairs)), count))]
