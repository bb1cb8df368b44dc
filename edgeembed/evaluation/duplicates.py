"""Duplicate questions as a retrieval set: is the other wording of a question found among all others?"""

import csv
from pathlib import Path
from typing import Literal

from edgeembed_runtime.errors import InputError

_FIRST, _SECOND, _LABEL = _COLUMNS = ("question1", "question2", "is_duplicate")
_EXPECTED = "expected UTF-8 TSV with a header that names question1, question2 and is_duplicate, as Quora's has"

Pair = tuple[str, str, bool]


def read_duplicates(file: Path) -> tuple[dict[str, str], dict[str, str], dict[str, set[str]]]:
    """Read pairs of questions as HPD does for its semantic retrieval (appendix C).

    Each distinct question2 is a document. Each distinct question1 that has a duplicate is a query, and its duplicates
    are the documents that answer it. The paper says that question1 is searched for in question2, and leaves open
    whether equal questions were joined and which questions were asked. By the memory in its table 3 its index held some
    83,000 vectors; which of the more than 500,000 questions that it counts in Quora's file those were, it does not say.

    Args:
        file: Tab-separated, with a header that names `question1`, `question2` and `is_duplicate` (0 or 1), quoted where
            a field needs it, as in Quora's own file, or not at all. Pairs that lack a question, of which Quora's file
            has a few, are left out.

    Returns:
        Queries by id, documents by id, and the ids of the documents that answer a query, by the query's id.

    Raises:
        InputError: If the file cannot be read, lacks a column, has a row that is no pair, or holds no duplicates.
    """
    pairs = _pairs(file)
    documents = {text: str(number) for number, text in enumerate(dict.fromkeys(second for _, second, _ in pairs))}
    answers: dict[str, set[str]] = {}
    for first, second, is_duplicate in pairs:
        if is_duplicate:
            answers.setdefault(first, set()).add(documents[second])
    if not answers:
        raise InputError(f"{file} holds no duplicates; expected a 1 in the column {_LABEL} of one pair or more")
    queries = {str(number): text for number, text in enumerate(answers)}
    relevant = {number: answers[text] for number, text in queries.items()}
    return queries, {number: text for text, number in documents.items()}, relevant


def _pairs(file: Path) -> list[Pair]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            lines = opened.readlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}; {_EXPECTED}") from error
    rows = _rows(lines, csv.QUOTE_MINIMAL) or _rows(lines, csv.QUOTE_NONE)
    if rows is None:
        raise InputError(f"{file} has rows with more or fewer fields than its header; {_EXPECTED}")
    header, *rest = rows or [[]]
    missing = [column for column in _COLUMNS if column not in header]
    if missing:
        raise InputError(f"{file} lacks the column {missing[0]}; {_EXPECTED}")
    places = [header.index(column) for column in _COLUMNS]
    pairs = [_pair(file, number, *(row[place] for place in places)) for number, row in enumerate(rest, start=1)]
    return [(first, second, is_duplicate) for first, second, is_duplicate in pairs if first and second]


def _rows(lines: list[str], quoting: Literal[0, 3]) -> list[list[str]] | None:
    """Give the rows, each as wide as the header; None if the file is not written that way."""
    try:
        rows = [row for row in csv.reader(lines, delimiter="\t", quoting=quoting, strict=True) if row]
    except csv.Error:  # such as a quote that ends nowhere
        return None
    return rows if len({len(row) for row in rows}) <= 1 else None


def _pair(file: Path, number: int, first: str, second: str, label: str) -> Pair:
    if label not in ("0", "1"):
        raise InputError(f"{file}, pair {number}: {_LABEL} is {label!r}; expected 0 or 1")
    return " ".join(first.split()), " ".join(second.split()), label == "1"
