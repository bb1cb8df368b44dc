"""Several tasks in one go, for one encoder or for several side by side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgeembed_bench.model_info import Parameters
from edgeembed_bench.paper_tables.hpd import IVFIndex, RetrievalTask, import_faiss

from edgeembed.evaluation.bitext import ROWS, BitextSet, read_bitext, score_bitext
from edgeembed.evaluation.cross_lingual_retrieval import (
    CrossLingualRetrieval,
    read_cross_lingual_retrieval,
    score_cross_lingual_retrieval,
)
from edgeembed.evaluation.cross_lingual_sts import CrossLingualPairs, read_cross_lingual_sts, score_cross_lingual_sts
from edgeembed.evaluation.encoders import SentenceEncoder, open_encoder
from edgeembed.evaluation.entity_resolution import EntitySet, read_entities, score_entities
from edgeembed.evaluation.geometry import POSITIVES_ABOVE, GeometrySet, read_geometry, score_geometry
from edgeembed.evaluation.glue import GlueTask, read_glue, score_glue
from edgeembed.evaluation.parameters import count_parameters
from edgeembed.evaluation.results import Evaluation
from edgeembed.evaluation.retrieval import RetrievalSet, read_retrieval, score_retrieval
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.semantic_retrieval import ListSettings, index_documents, score_searches, search_task
from edgeembed.evaluation.seven_sets import read_seven_sets
from edgeembed.evaluation.sts import SentencePairs, read_sts, score_sts
from edgeembed.evaluation.transfer import TransferSet, read_transfer, score_transfer
from edgeembed.evaluation.word_order import WordOrderSet, read_word_order, score_word_order
from edgeembed.progress import Reporter, SilentReporter

Task = (
    SentencePairs
    | RetrievalSet
    | EntitySet
    | GeometrySet
    | TransferSet
    | GlueTask
    | WordOrderSet
    | CrossLingualPairs
    | CrossLingualRetrieval
    | BitextSet
)


_SCORERS: Mapping[type[Task], Callable[[SentenceEncoder, Any], Score | list[Score]]] = {
    SentencePairs: score_sts,
    RetrievalSet: score_retrieval,
    EntitySet: score_entities,
    GeometrySet: score_geometry,
    TransferSet: score_transfer,
    GlueTask: score_glue,
    WordOrderSet: score_word_order,
    CrossLingualPairs: score_cross_lingual_sts,
    CrossLingualRetrieval: score_cross_lingual_retrieval,
    BitextSet: score_bitext,
}


@dataclass(frozen=True)
class TaskPaths:
    """What models are scored on.

    Attributes:
        sts: Files of scored sentence pairs, as `read_sts` takes them, and folders, as `read_seven_sets` does.
        retrieval: Retrieval sets to be searched exactly, as `read_retrieval` takes them.
        semantic_retrieval: Retrieval sets to be searched by inverted lists, likewise.
        entities: Files of queries and entities, as `read_entities` takes them.
        catalogue: The catalogue of all those files, likewise; None where each brings its own.
        lists: The settings of the inverted lists.
        geometry: Files of scored sentence pairs for alignment and uniformity, as `read_geometry` takes them.
        positives_above: Of these files, the score that positive pairs exceed.
        transfer: Sets to classify, as `read_transfer` takes them.
        glue: Folders of GLUE's tasks, as `read_glue` takes them.
        word_order: Text whose words change places, as `read_word_order` takes it.
        cross_lingual_sts: Scored sentence pairs in several languages, as `read_cross_lingual_sts` takes them.
        cross_lingual_retrieval: Retrieval sets in several languages, as `read_cross_lingual_retrieval` takes them.
        bitext: Files of sentences and their translations, as `read_bitext` takes them.
        bitext_rows: The most pairs to take of each of these.
    """

    sts: Sequence[Path] = ()
    retrieval: Sequence[Path] = ()
    semantic_retrieval: Sequence[Path] = ()
    entities: Sequence[Path] = ()
    catalogue: Path | None = None
    lists: ListSettings = field(default_factory=ListSettings)
    geometry: Sequence[Path] = ()
    positives_above: float = POSITIVES_ABOVE
    transfer: Sequence[Path] = ()
    glue: Sequence[Path] = ()
    word_order: Sequence[str] = ()
    cross_lingual_sts: Sequence[str | Path] = ()
    cross_lingual_retrieval: Sequence[str | Path] = ()
    bitext: Sequence[str | Path] = ()
    bitext_rows: int = ROWS


@dataclass(frozen=True)
class _Seen:
    """What an encoder gave before searches are timed, for which all encoders have to be ready."""

    parameters: Parameters | None
    scores: tuple[Score, ...]
    indexes: tuple[IVFIndex, ...]


def evaluate(
    model: str,
    *,
    sts: Sequence[Path] = (),
    retrieval: Sequence[Path] = (),
    against: str | None = None,
    reporter: Reporter | None = None,
) -> Evaluation:
    """Score a model, and a reference beside it.

    Args:
        model: A model or a bundle by any name that `edgeembed.models.find_model` takes.
        sts: As for `TaskPaths`.
        retrieval: As for `TaskPaths`.
        against: The reference, named like `model`.
        reporter: Hears of each task.

    Returns:
        The scores, in float32 arithmetic.

    Raises:
        InputError: If a file or a model cannot be used; files are read before a model is loaded.
        CheckError: If an encoder's vectors cannot be scored.
    """
    return evaluate_models([model], TaskPaths(sts, retrieval), against=against, reporter=reporter)[0]


def evaluate_models(
    models: Sequence[str], paths: TaskPaths, *, against: str | None = None, reporter: Reporter | None = None
) -> tuple[Evaluation, ...]:
    """Score models side by side, and a reference beside them.

    Args:
        models: Models or bundles by any name that `edgeembed.models.find_model` takes.
        paths: What they are scored on.
        against: The reference, named like the models.
        reporter: Hears of each task.

    Returns:
        One evaluation a model, in float32 arithmetic. What was named twice was scored once.

    Raises:
        InputError: If a file or a model cannot be used; files are read before a model is loaded.
        CheckError: If an encoder's vectors cannot be scored.
        MissingExtraError: If semantic retrieval was asked for and faiss is not installed.
    """
    reporter = reporter or SilentReporter()
    tasks = [
        *read_tasks(paths.sts, paths.retrieval),
        *(read_entities(each, paths.catalogue) for each in paths.entities),
        *(read_geometry(each, paths.positives_above) for each in paths.geometry),
        *read_transfer(paths.transfer),
        *(task for folder in paths.glue for task in read_glue(folder)),
        *(read_word_order(each) for each in paths.word_order),
        *map(read_cross_lingual_sts, paths.cross_lingual_sts),
        *map(read_cross_lingual_retrieval, paths.cross_lingual_retrieval),
        *([read_bitext(paths.bitext, paths.bitext_rows)] if paths.bitext else []),
    ]
    searches = [search_task(read_retrieval(path)) for path in paths.semantic_retrieval]
    if searches:
        import_faiss()
    names = dict.fromkeys([*([against] if against is not None else []), *models])
    seen = {name: _see(name, tasks, searches, paths.lists, reporter) for name in names}
    scores = {name: [*each.scores] for name, each in seen.items()}
    for number, task in enumerate(searches):
        with reporter.step(f"searching {task.name}"):
            indexes = {name: each.indexes[number] for name, each in seen.items()}
            for name, score in score_searches(indexes, task, paths.lists).items():
                scores[name].append(score)
    beside = () if against is None else tuple(scores[against])
    theirs = None if against is None else seen[against].parameters
    return tuple(
        Evaluation(model, tuple(scores[model]), against, beside, seen[model].parameters, theirs) for model in models
    )


def read_tasks(sts: Sequence[Path], retrieval: Sequence[Path]) -> list[Task]:
    """Read all that is to be scored.

    Args:
        sts: As for `TaskPaths`.
        retrieval: As for `TaskPaths`.

    Raises:
        InputError: If one cannot be used.
    """
    pairs = [found for path in sts for found in (read_seven_sets(path) if path.is_dir() else [read_sts(path)])]
    return [*pairs, *map(read_retrieval, retrieval)]


def score_tasks(name: str, encoder: SentenceEncoder, tasks: Sequence[Task], reporter: Reporter) -> tuple[Score, ...]:
    """Score an encoder on tasks, in their order.

    Args:
        name: What the reporter calls it.
        encoder: What to score.
        tasks: What `read_tasks` gave.
        reporter: Hears of each task.

    Raises:
        CheckError: If the encoder's vectors cannot be scored.
    """
    scores: list[Score] = []
    for task in tasks:
        with reporter.step(f"{name} on {task.name}"):
            scores.extend(_score(encoder, task))
    return tuple(scores)


def _score(encoder: SentenceEncoder, task: Task) -> list[Score]:
    scores = _SCORERS[type(task)](encoder, task)
    return scores if isinstance(scores, list) else [scores]


def _see(
    name: str, tasks: Sequence[Task], searches: Sequence[RetrievalTask], lists: ListSettings, reporter: Reporter
) -> _Seen:
    encoder = open_encoder(name)
    scores = score_tasks(name, encoder, tasks, reporter)
    indexes = []
    for task in searches:
        with reporter.step(f"{name} on {task.name}, inverted lists"):
            indexes.append(index_documents(encoder, task, lists))
    return _Seen(count_parameters(encoder), scores, tuple(indexes))
