"""Entity resolution, SimTDE's second task: is the nearest entity of a catalogue the one that a query means?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.streams import read_lines
from edgeembed.corpus.tables import is_csv
from edgeembed.evaluation.encoders import SentenceEncoder
from edgeembed.evaluation.retrieval import RetrievalSet, retrieval_metrics
from edgeembed.evaluation.scores import Score
from edgeembed.tsv import read_tsv

METRIC = "R@1 x100"
AVERAGE = "average"
_EXPECTED = "expected TSV with a header that names query and entity, and label (0 or 1) and language if wanted"


@dataclass(frozen=True)
class EntitySet:
    """Queries, and catalogues of the entities that they may mean.

    Attributes:
        name: The file's name, with its folder.
        languages: For each language its queries and its catalogue; for a file that names no languages, one of no name.
    """

    name: str
    languages: dict[str, RetrievalSet]


def read_entities(file: Path, catalogue: Path | None = None) -> EntitySet:
    """Read queries and the entities that they mean.

    Args:
        file: UTF-8, tab-separated, no quoting, with a header that names `query` and `entity`. A column `label` may hold
            1 where the query means the entity and 0 where it does not; a row with 0 only adds to the catalogue. A
            column `language` gives each language queries and a catalogue of its own.
        catalogue: All entities, one a line, for every language; if absent, the catalogue of a language is every
            distinct entity of its rows. A file that ends in .tsv or .csv has a header and a column `entity`.

    Returns:
        The set. Equal queries of a language are one query, which may mean any of their entities.

    Raises:
        InputError: If a file cannot be read or lacks a column, a row is malformed, no query means an entity, or an
            entity that a query means is not in the catalogue.
    """
    rows = _rows(file)
    shared = None if catalogue is None else _catalogue(catalogue)
    languages = dict.fromkeys(row.get("language", "") for row in rows)
    sets = {language: [row for row in rows if row.get("language", "") == language] for language in languages}
    name = f"{file.resolve().parent.name}/{file.stem}"
    return EntitySet(name, {language: _set(file, language, part, shared) for language, part in sets.items()})


def score_entities(encoder: SentenceEncoder, task: EntitySet) -> list[Score]:
    """Score an encoder by R@1: how many of 100 queries have an entity that they mean nearest, by cosine.

    With one entity a query, as in the paper, this is recall and accuracy alike; of a query that may mean several, one
    of them has to be the nearest (accuracy at 1), since no one entity could recall them all.

    Args:
        encoder: What to score.
        task: Queries and catalogues.

    Returns:
        One score a language, and with two languages or more the mean over these, each as much as another.

    Raises:
        CheckError: If the encoder gives vectors that are not finite.
    """
    scores = []
    for language, each in task.languages.items():
        found = 100 * float(retrieval_metrics(encoder, each)["accuracy@k"][1])
        name = f"{task.name} {language}" if language else task.name
        scores.append(Score(name, METRIC, found, len(each.queries), {"entities": len(each.documents)}))
    if len(scores) > 1:
        mean = sum(score.value for score in scores) / len(scores)
        scores.append(Score(f"{task.name} {AVERAGE}", METRIC, mean, sum(score.items for score in scores)))
    return scores


def _set(file: Path, language: str, rows: Sequence[dict[str, str]], shared: dict[str, str] | None) -> RetrievalSet:
    numbers = _numbered(row["entity"] for row in rows) if shared is None else shared
    meant: dict[str, set[str]] = {}
    for row in rows:
        if row.get("label", "1") == "1":
            if row["entity"] not in numbers:
                raise InputError(f"{file}: {row['entity']!r} is not in the catalogue; expected every entity there")
            meant.setdefault(row["query"], set()).add(numbers[row["entity"]])
    if not meant:
        which = f" of language {language}" if language else ""
        raise InputError(f"{file}: no query{which} means an entity; expected a label 1 in one row or more")
    queries = {str(number): query for number, query in enumerate(meant)}
    documents = {number: entity for entity, number in numbers.items()}
    return RetrievalSet(language, queries, documents, {number: meant[query] for number, query in queries.items()})


def _numbered(entities: Iterable[str]) -> dict[str, str]:
    return {entity: str(number) for number, entity in enumerate(dict.fromkeys(entities))}


def _catalogue(file: Path) -> dict[str, str]:
    if file.suffix == ".tsv" or is_csv(file):
        entities = [row["entity"] for row in read_tsv(file, ("entity",), (), _EXPECTED)]
    else:
        entities = [line.strip() for _, line in read_lines(file)]
    numbers = _numbered(entity for entity in entities if entity)
    if not numbers:
        raise InputError(f"{file} holds no entities; expected one a line, or a column entity in a .tsv or .csv")
    return numbers


def _rows(file: Path) -> list[dict[str, str]]:
    rows = read_tsv(file, ("query", "entity"), ("label", "language"), _EXPECTED)
    for number, row in enumerate(rows, start=1):
        if not all(row.values()) or row.get("label", "1") not in ("0", "1"):
            raise InputError(f"{file}, row {number} lacks a field or has another label than 0 and 1; {_EXPECTED}")
    if not rows:
        raise InputError(f"{file} holds no rows below its header; {_EXPECTED}")
    return rows
