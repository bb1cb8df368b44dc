"""Entity resolution (SimTDE, table 3): R@1 of finding the entity that a query means in a catalog."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from edgeembed_bench.render.tables import Table
from edgeembed_runtime.errors import InputError

from edgeembed.corpus.streams import file_ending, read_lines
from edgeembed.corpus.tables import read_tsv
from edgeembed.evaluation.encoders import SentenceEncoder
from edgeembed.evaluation.intervals import scaled, share_interval
from edgeembed.evaluation.layout import change, table_of_scores
from edgeembed.evaluation.model_evaluation import Rows
from edgeembed.evaluation.ranking import rank
from edgeembed.evaluation.retrieval_set import RetrievalSet
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike, Setting

METRIC = "R@1 x100"
AVERAGE = "average"
_EXPECTED = "expected TSV with the columns query and entity, and optionally label (0 or 1) and language"


@dataclass(frozen=True)
class EntitySet:
    """Queries and the catalogs of entities in which they are searched.

    Attributes:
        name: The file's name with its folder's.
        languages: Queries and catalog of each language; one entry with an empty name for a file without languages.
    """

    name: str
    languages: dict[str, RetrievalSet]


@TASKS.register("entities")
class EntityResolution(EvaluationTask):
    """Entity resolution: the nearest entity to a query.

    Args:
        sources: Files of queries and the entities that they mean, as `read_entities` takes them.
        catalog: File of all entities; None uses those in each file.

    Raises:
        InputError: If a file cannot be read.
    """

    metavar = "FILE"
    help = (
        "TSV of queries and the entities that they mean: query, entity, and optionally label (0 or 1) and language. "
        "R@1 (SimTDE, table 3)."
    )

    def __init__(
        self,
        *sources: PathLike,
        catalog: Annotated[
            PathLike | None,
            Setting(
                "All entities, one per line, or a .tsv with a column entity.  [default: those in --entities]",
                metavar="FILE",
            ),
        ] = None,
    ) -> None:
        files = self.check_sources(sources)
        self.sets = [read_entities(Path(each), None if catalog is None else Path(catalog)) for each in files]

    def score(self, encoder: SentenceEncoder, data: EntitySet) -> list[Score]:
        """Score an encoder, see `score_entities`."""
        return score_entities(encoder, data)

    @classmethod
    def tables(cls, rows: Rows) -> list[Table]:
        """Return table 3 of SimTDE."""
        legends = ["R@1 x100: queries whose nearest entity is one that they mean"]
        return [table_of_scores("Entity resolution", rows, legends, relative=("change", change), parameters=True)]


def read_entities(file: Path, catalog: Path | None = None) -> EntitySet:
    """Read queries and the entities that they mean.

    Args:
        file: A TSV or CSV file, see `edgeembed.corpus.tables.read_rows`, with the columns `query` and `entity`. An
            optional column `label` is 1 if the query means the entity; a row with 0 only adds the entity to the
            catalog. An optional column `language` separates queries and catalogs by language.
        catalog: All entities, for every language: one per line, or a column `entity` in a `.tsv` or `.csv` file. None
            uses the distinct entities of each language's rows.

    Returns:
        The set. Equal queries of a language are one query, for which any of their entities is correct.

    Raises:
        InputError: If a file cannot be read or lacks a column, a row is malformed, no query means an entity, or an
            entity that a query means is not in the catalog.
    """
    rows = _read_rows(file)
    shared = None if catalog is None else _read_catalog(catalog)
    languages = dict.fromkeys(row.get("language", "") for row in rows)
    by_language = {language: [row for row in rows if row.get("language", "") == language] for language in languages}
    name = f"{file.resolve().parent.name}/{file.stem}"
    return EntitySet(
        name, {language: _make_set(file, language, part, shared) for language, part in by_language.items()}
    )


def score_entities(encoder: SentenceEncoder, task: EntitySet) -> list[Score]:
    """Compute R@1: the share of queries whose nearest entity by cosine similarity is one that they mean.

    With one entity per query, as in the paper, recall at 1 equals accuracy at 1. Where a query means several entities,
    this is accuracy at 1.

    Args:
        encoder: The encoder.
        task: Queries and catalogs.

    Returns:
        One score per language; with several languages also their unweighted mean.

    Raises:
        CheckError: If embeddings are not finite.
    """
    scores = []
    for language, each in task.languages.items():
        found = rank(encoder, each)
        name = f"{task.name} {language}" if language else task.name
        value, queries = 100 * float(found.mean["accuracy@k"][1]), len(each.queries)
        interval = scaled(share_interval(round(sum(found.values("accuracy@k", 1))), queries))
        scores.append(Score(name, METRIC, value, queries, {"entities": len(each.documents)}, interval=interval))
    if len(scores) > 1:
        mean = statistics.fmean(score.value for score in scores)
        scores.append(Score(f"{task.name} {AVERAGE}", METRIC, mean, sum(score.items for score in scores)))
    return scores


def _make_set(file: Path, language: str, rows: Sequence[dict[str, str]], shared: dict[str, str] | None) -> RetrievalSet:
    ids = _ids(row["entity"] for row in rows) if shared is None else shared
    answers: dict[str, set[str]] = {}
    for row in rows:
        if row.get("label", "1") == "1":
            if row["entity"] not in ids:
                raise InputError(f"{file}: {row['entity']!r} is not in the catalog; expected all entities there")
            answers.setdefault(row["query"], set()).add(ids[row["entity"]])
    if not answers:
        which = f" of language {language}" if language else ""
        raise InputError(f"{file}: no query{which} means an entity; expected label 1 in at least one row")
    queries = {f"q{number}": query for number, query in enumerate(answers)}
    documents = {key: entity for entity, key in ids.items()}
    return RetrievalSet(language, queries, documents, {key: answers[query] for key, query in queries.items()})


def _ids(entities: Iterable[str]) -> dict[str, str]:
    return {entity: str(number) for number, entity in enumerate(dict.fromkeys(entities))}


def _read_catalog(file: Path) -> dict[str, str]:
    if file_ending(file) in (".tsv", ".csv"):
        entities = [row["entity"] for row in read_tsv(file, ("entity",), (), _EXPECTED)]
    else:
        entities = [line.strip() for _, line in read_lines(file)]
    ids = _ids(entity for entity in entities if entity)
    if not ids:
        raise InputError(f"{file} contains no entities; expected one per line, or a column entity in a .tsv or .csv")
    return ids


def _read_rows(file: Path) -> list[dict[str, str]]:
    rows = read_tsv(file, ("query", "entity"), ("label", "language"), _EXPECTED)
    for number, row in enumerate(rows, start=1):
        if not all(row.values()) or row.get("label", "1") not in ("0", "1"):
            raise InputError(f"{file}, row {number} lacks a field or its label is neither 0 nor 1; {_EXPECTED}")
    if not rows:
        raise InputError(f"{file} has no rows below its header; {_EXPECTED}")
    return rows
