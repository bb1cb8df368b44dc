"""Result of training a vocabulary: its coverage, as text, Markdown and JSON."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeembed_exporters.reduction.coverage import Coverage
from edgeembed_runtime.report import Report
from rich.console import Console
from rich.table import Table

from edgeembed.corpus import CorpusCounts
from edgeembed.vocabulary.coverage import CURVE_SIZES, LanguageCoverage


@dataclass(frozen=True)
class CoverageTable:
    """A table of a coverage report.

    Attributes:
        title: What the table shows.
        columns: Headers of the columns; numbers are right-aligned.
        rows: Cells as text.
        labels: Number of leading columns that hold text.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int

    def to_text(self) -> str:
        """Return the table for a terminal, drawn with lines."""
        table = Table(title=self.title, title_justify="left")
        for number, column in enumerate(self.columns):
            is_label = number < self.labels
            table.add_column(column, justify="left" if is_label else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        console = Console(file=io.StringIO())
        with console.capture() as captured:
            console.print(table, highlight=False)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def to_markdown(self) -> str:
        """Return the title and the table as Markdown."""
        rule = ["---" if number < self.labels else "---:" for number in range(len(self.columns))]
        lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in self.rows]
        return "\n".join([f"**{self.title}**", "", f"| {' | '.join(self.columns)} |", f"|{'|'.join(rule)}|", *lines])


@dataclass(frozen=True)
class VocabularyReport(Report):
    """Result of `train_vocabulary`.

    Attributes:
        path: The tokenizer file.
        size: Vocabulary size, special tokens included.
        corpus: Number of texts read, dropped and kept.
        coverage: Coverage of each vocabulary on the held-out sentences, by name: this one first, then the others.
            Empty if it was not measured.
        languages: Coverage by language; empty for a corpus without languages.
    """

    path: Path
    size: int
    corpus: CorpusCounts
    coverage: dict[str, Coverage]
    languages: tuple[LanguageCoverage, ...]

    def __str__(self) -> str:
        """Return one line about the tokenizer file and the tables of its coverage."""
        return "\n".join([self._summary(), *(table.to_text() for table in self._tables())]).rstrip()

    def _markdown(self) -> str:
        return "\n\n".join([self._summary(), *(table.to_markdown() for table in self._tables())]) + "\n"

    def _summary(self) -> str:
        return f"{self.path}: {self.size:,} tokens"

    def _tables(self) -> list[CoverageTable]:
        tables = [coverage_table(self.coverage)] if self.coverage else []
        if self.languages and self.coverage:
            tables += [_language_table(self.languages), _whole_word_table(self.languages)]
        return tables


def coverage_table(coverage: Mapping[str, Coverage]) -> CoverageTable:
    """Return a table that compares vocabularies.

    Args:
        coverage: Coverage of each vocabulary, by name; all measured on the same sentences.
    """
    sentences = next(iter(coverage.values())).sentences
    rows = tuple(
        (name, f"{row.size:,}", f"{row.size_bytes / 1000:,.0f}", *_rates(row)) for name, row in coverage.items()
    )
    columns = ("vocabulary", "tokens", "kB", "unknown", "tokens a word")
    return CoverageTable(f"coverage of {sentences:,} sentences", columns, rows, labels=1)


def _language_table(languages: Sequence[LanguageCoverage]) -> CoverageTable:
    rows = tuple(
        (each.language, name, f"{each.text_share:.1%}", f"{each.sample_share:.1%}", *_rates(row))
        for each in languages
        for name, row in each.coverage.items()
    )
    columns = ("language", "vocabulary", "text", "sample", "unknown", "tokens a word")
    title = "languages: share of the text and of the sample, and coverage of the held-out sentences"
    return CoverageTable(title, columns, rows, labels=2)


def _whole_word_table(languages: Sequence[LanguageCoverage]) -> CoverageTable:
    curves = [(each.language, name, curve) for each in languages for name, curve in each.whole_words.items()]
    sizes = [size for size in CURVE_SIZES if any(size < max(curve) for _, _, curve in curves)]
    rows = tuple(
        (
            language,
            name,
            *(f"{curve[size]:.1%}" if size in curve else "-" for size in sizes),
            f"{curve[max(curve)]:.1%}",
        )
        for language, name, curve in curves
    )
    columns = ("language", "vocabulary", *(f"{size:,}" for size in sizes), "all")
    return CoverageTable("words that are a single token, among the first N tokens", columns, rows, labels=2)


def _rates(coverage: Coverage) -> tuple[str, str]:
    unknown = "none" if coverage.unknown_rate is None else f"{coverage.unknown_rate:.2%}"
    return unknown, f"{coverage.tokens_per_word:.2f}"
