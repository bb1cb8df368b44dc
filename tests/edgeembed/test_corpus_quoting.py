"""Quoted fields of CSV and TSV files, and the quotes of TSV files that are ordinary characters."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from edgeembed_runtime import quoting
from edgeembed_runtime.errors import InputError

from edgeembed.corpus.tables import read_columns, read_rows, read_tsv

HEADER = ["label", "text"]
Quoting = Literal[0, 1, 2]
MINIMAL: Quoting = csv.QUOTE_MINIMAL
ALL: Quoting = csv.QUOTE_ALL
NONNUMERIC: Quoting = csv.QUOTE_NONNUMERIC
PLAIN = ["a", "plain text"]


def written(
    rows: Sequence[Sequence[str]], quoting: Quoting = MINIMAL, line_end: str = "\n", delimiter: str = "\t"
) -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator=line_end).writerows([HEADER, *rows])
    return stream.getvalue()


def read(folder: Path, content: str, name: str = "table.tsv") -> list[list[str]]:
    (folder / name).write_bytes(content.encode())
    return [fields for _, fields in read_rows(folder / name)][1:]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoting", [MINIMAL, ALL, NONNUMERIC])
@pytest.mark.parametrize(
    "rows",
    [
        [["a", 'the "best" of all'], ["b", "plain text"], ["a", 'ends with a "quote"']],
        [["b", "plain text"], ["a", '"all" of it'], ["b", '"']],
        [["a", "a\ttab"], PLAIN, ["b", 'a "quote"']],
        [PLAIN, ["a", "a line\nbreak"], PLAIN],
        [["a line\n\nbreak", "in the first column"], PLAIN],
        [PLAIN, ["b", 'a "quote"\nand a line break']],
        [PLAIN, ["b", "last\nbreak"]],
    ],
)
def test_a_tsv_that_a_csv_writer_wrote_is_read_as_it_was(
    tmp_path: Path, rows: list[list[str]], quoting: Quoting, line_end: str
) -> None:
    assert read(tmp_path, written(rows, quoting, line_end)) == rows


@pytest.mark.parametrize(
    "rows",
    [
        [["a", '"Then he left.'], PLAIN],
        [["a", '"It is late," she said.'], ["b", '"A whole sentence."'], ["a", 'doubled ""quotes"" inside']],
        [["a", '"A whole sentence."'], PLAIN],
        [["a", '5" disks'], ["b", '"the ""best"" of all"']],
        [["a", '"open'], ["b", 'close"']],
        [["a", '"'], ["b", '""'], ["a", '"""']],
        [PLAIN, ["a", '"open in the last row']],
    ],
)
def test_ordinary_quotes_of_a_tsv_are_kept(tmp_path: Path, rows: list[list[str]]) -> None:
    content = "".join("\t".join(row) + "\n" for row in [HEADER, *rows])
    assert read(tmp_path, content) == rows
    assert read(tmp_path, content.replace("\n", "\n\n")) == rows


def test_columns_and_rows_of_a_quoted_tsv_are_found_by_name(tmp_path: Path) -> None:
    file = tmp_path / "table.tsv"
    file.write_text(written([["a", "two\nlines"], ["b", 'a "quote"']], ALL))
    assert list(read_columns(file, ["text"])) == [(2, ("two\nlines",)), (4, ('a "quote"',))]
    assert read_tsv(file, ("label", "text"), (), "expected")[1] == {"label": "b", "text": 'a "quote"'}


@pytest.mark.parametrize(("name", "delimiter"), [("table.csv", ","), ("table.tsv", "\t")])
def test_a_quote_that_is_never_closed_is_named_by_the_line_of_its_row(
    tmp_path: Path, name: str, delimiter: str
) -> None:
    content = written([PLAIN, ["b", 'a "quote"']], delimiter=delimiter) + f'a{delimiter}"open\n' + "b\n" * 50
    kind = "CSV" if delimiter == "," else "a quoted TSV"
    with pytest.raises(InputError, match=rf"{name} lines 4 to 54 are not {kind} \(unexpected end of data\)"):
        read(tmp_path, content, name)


@pytest.mark.parametrize("name", ["table.csv", "table.tsv"])
def test_a_long_field_is_read(tmp_path: Path, name: str) -> None:
    rows = [["a", "word " * 50_000 + '"'], PLAIN]
    assert read(tmp_path, written(rows, delimiter="," if name == "table.csv" else "\t"), name) == rows


def test_a_field_beyond_the_limit_is_an_error_that_names_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quoting, "MAX_FIELD_CHARACTERS", 200_000)
    with pytest.raises(InputError, match=r"row that begins in line 3 has more than 200,000 characters"):
        read(tmp_path, written([PLAIN, ["a", "word " * 50_000]], delimiter=","), "table.csv")
