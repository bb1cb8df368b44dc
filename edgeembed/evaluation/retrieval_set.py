"""Retrieval sets: queries, documents and judgments, from BEIR folders and files of duplicate questions."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from edgeembed_runtime.errors import InputError

_LAYOUT = "expected a BEIR folder: corpus.jsonl, queries.jsonl, qrels/test.tsv"
_QUESTION_COLUMNS = ("question1", "question2", "is_duplicate")
_QUESTIONS = "expected UTF-8 TSV with the columns question1, question2 and is_duplicate, as in Quora's file"


@dataclass(frozen=True)
class RetrievalSet:
    """Queries, documents and relevance judgments.

    Attributes:
        name: The folder's name; for a file its name with its folder's.
        queries: Queries with judgments, by id.
        documents: Title and text of each document, by id.
        relevant: Ids of the relevant documents, by query id. Relevance is binary: any grade above 0.
    """

    name: str
    queries: dict[str, str]
    documents: dict[str, str]
    relevant: dict[str, set[str]]

    def is_ranked(self, query: str, document: str) -> bool:
        """Return whether a query is to find a document, both by id: any but itself, as in BEIR's own evaluation.

        In BEIR's ArguAna and Quora, queries are also documents, of the same id. A document that is judged relevant is
        another text, whose id is equal by chance.
        """
        return document != query or document in self.relevant[query]


def read_retrieval(path: Path) -> RetrievalSet:
    """Read a retrieval set in the BEIR layout, or a file of duplicate questions.

    Args:
        path: A folder with `corpus.jsonl` (_id, title, text), `queries.jsonl` (_id, text) and `qrels/test.tsv`
            (query-id, corpus-id, score; with a header); or a file in the format of `read_duplicates`.

    Returns:
        The set; queries without judgments are left out.

    Raises:
        InputError: If a file is missing or malformed, or a judgment refers to an unknown query or document.
    """
    if path.is_file():
        return read_duplicates(path)
    documents = {key: f"{row.get('title') or ''} {row['text']}".strip() for key, row in _rows(path / "corpus.jsonl")}
    queries = {key: row["text"] for key, row in _rows(path / "queries.jsonl")}
    relevant = _read_judgments(path / "qrels" / "test.tsv")
    for query, answers in relevant.items():
        if query not in queries or not answers <= documents.keys():
            raise InputError(f"{path}: a judgment of query {query} refers to an unknown query or document; {_LAYOUT}")
    return RetrievalSet(path.resolve().name, {query: queries[query] for query in relevant}, documents, relevant)


def read_duplicates(file: Path) -> RetrievalSet:
    """Read duplicate questions as a retrieval set, as for HPD's semantic retrieval (Zhao et al. 2022, appendix C).

    Each distinct question2 is a document. Each distinct question1 with a duplicate is a query; its duplicates are the
    relevant documents. The paper searches each question1 among all question2, but does not say whether equal
    questions were merged, nor which questions were queries: its table 3 implies an index of about 83,000 vectors,
    although it counts more than 500,000 questions in Quora's file.

    Args:
        file: UTF-8, tab-separated, with the columns `question1`, `question2` and `is_duplicate` (0 or 1). Fields are
            quoted as in CSV, like Quora's file, or not at all. Pairs that lack a question are left out.

    Raises:
        InputError: If the file cannot be read, lacks a column, has a malformed row, or contains no duplicates.
    """
    pairs = _read_question_pairs(file)
    ids = {text: str(number) for number, text in enumerate(dict.fromkeys(second for _, second, _ in pairs))}
    answers: dict[str, set[str]] = {}
    for first, second, is_duplicate in pairs:
        if is_duplicate:
            answers.setdefault(first, set()).add(ids[second])
    if not answers:
        raise InputError(f"{file} contains no duplicates; expected is_duplicate 1 in at least one row")
    queries = {f"q{number}": text for number, text in enumerate(answers)}
    return RetrievalSet(
        f"{file.resolve().parent.name}/{file.stem}",
        queries,
        {key: text for text, key in ids.items()},
        {key: answers[text] for key, text in queries.items()},
    )


def _rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _parse_row(line, f"{file}, line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error, _LAYOUT) from error


def _parse_row(line: str, place: str) -> tuple[str, dict[str, Any]]:
    try:
        row = json.loads(line)
        if isinstance(row["text"], str):
            return str(row["_id"]), row
    except (ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{place} is malformed; expected a JSON object with _id and text")


def _read_judgments(file: Path) -> dict[str, set[str]]:
    relevant: dict[str, set[str]] = {}
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                if float(row["score"]) > 0:
                    relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error, _LAYOUT) from error
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise InputError(f"{file} is malformed: {error}; expected query-id, corpus-id and a numeric score") from error
    if not relevant:
        raise InputError(f"{file} judges no document relevant; expected at least one score above 0")
    return relevant


def _read_question_pairs(file: Path) -> list[tuple[str, str, bool]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            lines = opened.readlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error, _QUESTIONS) from error
    rows = _parse_tsv(lines, csv.QUOTE_MINIMAL) or _parse_tsv(lines, csv.QUOTE_NONE)
    if rows is None:
        raise InputError(f"{file} has rows with more or fewer fields than its header; {_QUESTIONS}")
    header, *rest = rows or [[]]
    missing = [column for column in _QUESTION_COLUMNS if column not in header]
    if missing:
        raise InputError(f"{file} lacks the column {missing[0]}; {_QUESTIONS}")
    columns = [header.index(column) for column in _QUESTION_COLUMNS]
    pairs = []
    for number, row in enumerate(rest, start=1):
        first, second, label = (row[column] for column in columns)
        if label not in ("0", "1"):
            raise InputError(f"{file}, pair {number}: is_duplicate is {label!r}; expected 0 or 1")
        pairs.append((" ".join(first.split()), " ".join(second.split()), label == "1"))
    return [pair for pair in pairs if pair[0] and pair[1]]


def _parse_tsv(lines: list[str], quoting: Literal[0, 3]) -> list[list[str]] | None:
    """Return the rows; None if they do not all have the same number of fields with this style of quoting."""
    try:
        rows = [row for row in csv.reader(lines, delimiter="\t", quoting=quoting, strict=True) if row]
    except csv.Error:  # such as an unclosed quote
        return None
    return rows if len({len(row) for row in rows}) <= 1 else None


def _unreadable(file: Path, error: OSError | UnicodeDecodeError, expected: str) -> InputError:
    return InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}; {expected}")
