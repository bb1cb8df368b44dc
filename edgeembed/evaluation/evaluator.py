"""Evaluate models side by side on one or more tasks."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeembed_bench.model_info import Parameters
from edgeembed_bench.paper_tables.retrieval import NLIST, NPROBE, IVFIndex, RetrievalTask, import_faiss
from edgeembed_bench.subjects import unique_names
from edgeembed_runtime.errors import InputError

from edgeembed.arguments import check_argument_types
from edgeembed.corpus.pairs import SentencePairs
from edgeembed.evaluation.asymmetric import asymmetric_tasks
from edgeembed.evaluation.bitext import MAX_ROWS, read_bitext
from edgeembed.evaluation.cross_lingual import read_cross_lingual_retrieval, read_cross_lingual_sts
from edgeembed.evaluation.encoders import EncoderLike, SentenceEncoder, count_parameters, encoder_name, find_encoder
from edgeembed.evaluation.entity_resolution import read_entities
from edgeembed.evaluation.geometry import POSITIVES_ABOVE, read_geometry
from edgeembed.evaluation.glue import read_glue
from edgeembed.evaluation.report import EvaluationReport, ModelEvaluation, read_evaluation
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.semantic_retrieval import (
    IVFSettings,
    build_index,
    make_retrieval_task,
    score_semantic_retrieval,
)
from edgeembed.evaluation.suite import (
    PathLike,
    RetrievalLike,
    STSLike,
    Task,
    as_list,
    as_retrieval_tasks,
    as_sts_tasks,
    score_tasks,
)
from edgeembed.evaluation.transfer import read_transfer
from edgeembed.evaluation.word_order import read_word_order
from edgeembed.progress import Reporter, SilentReporter

TASK_ARGUMENTS = (
    "sts",
    "retrieval",
    "semantic_retrieval",
    "entities",
    "geometry",
    "transfer",
    "glue",
    "word_order",
    "cross_lingual_sts",
    "cross_lingual_retrieval",
    "bitext",
)
"""The arguments of `evaluate` that name tasks."""


@check_argument_types
def evaluate(  # noqa: PLR0913  # one parameter per kind of task
    models: EncoderLike | Sequence[EncoderLike],
    *,
    against: EncoderLike | None = None,
    sts: STSLike | Sequence[STSLike] = (),
    retrieval: RetrievalLike | Sequence[RetrievalLike] = (),
    documents_by: EncoderLike | None = None,
    semantic_retrieval: RetrievalLike | Sequence[RetrievalLike] = (),
    nlist: int = NLIST,
    nprobe: int = NPROBE,
    entities: PathLike | Sequence[PathLike] = (),
    catalog: PathLike | None = None,
    geometry: STSLike | Sequence[STSLike] = (),
    positives_above: float = POSITIVES_ABOVE,
    transfer: PathLike | Sequence[PathLike] = (),
    glue: PathLike | Sequence[PathLike] = (),
    word_order: PathLike | Sequence[PathLike] = (),
    cross_lingual_sts: PathLike | Sequence[PathLike] = (),
    cross_lingual_retrieval: PathLike | Sequence[PathLike] = (),
    bitext: PathLike | Sequence[PathLike] = (),
    bitext_rows: int = MAX_ROWS,
    add_to: PathLike | None = None,
    reporter: Reporter | None = None,
) -> EvaluationReport:
    """Evaluate models side by side on one or more tasks.

    Every argument that names a task takes one path or a list of them. All files are read before a model is loaded.

    Args:
        models: One or more models: built-in bundles ("mini", "nano", "micro"), folders of bundles or models, installed
            packages that carry a model, hub ids, or loaded encoders such as a `SentenceTransformer` or an
            `edgeembed_runtime.Encoder`.
        against: The reference model, usually the teacher.
        sts: Files of scored sentence pairs (`sentence1`, `sentence2`, `score`), or folders of the seven STS sets:
            Spearman correlation.
        retrieval: BEIR folders, or files of duplicate questions: nDCG@10, MRR@10, MAP@100.
        documents_by: An encoder for the documents of `retrieval`, usually the teacher: each set is scored a second
            time, with its documents by this encoder and the queries by each model. None for one score per set.
        semantic_retrieval: As `retrieval`, searched with a faiss IVF index: MRR@10, search time, index memory.
        nlist: Number of inverted lists of that index.
        nprobe: Number of lists searched per query.
        entities: Files of queries and the entities that they mean (`query`, `entity`): R@1.
        catalog: File of all entities; None uses those in each file of `entities`.
        geometry: Files of scored sentence pairs: alignment and uniformity, for which lower is better.
        positives_above: Pairs of `geometry` with a higher score are positive.
        transfer: Folders of SentEval's transfer tasks, or files of labeled texts: accuracy of a logistic regression.
        glue: Folders of GLUE tasks: GLUE's metrics of a logistic regression.
        word_order: Text sources, as a corpus: accuracy of detecting two swapped words.
        cross_lingual_sts: Folders of scored sentence pairs in several languages: Spearman correlation.
        cross_lingual_retrieval: Folders of translated BEIR folders: nDCG@10.
        bitext: Files of sentences and their translations: accuracy of finding the translation.
        bitext_rows: Maximum number of distinct pairs per file of `bitext`.
        add_to: JSON file of an earlier report on the same tasks, with the same reference, which is not scored again.
            The models are added to those of this report, and replace those of the same name.
        reporter: Receives the progress; None is silent.

    Returns:
        The report: one evaluation per model, in order, after those of `add_to`. A model that is given twice is scored
        once.

    Raises:
        InputError: If there are no models or tasks, or an argument is wrong, before a model is loaded; if the tasks of
            `add_to` differ, after the first model was scored.
        CheckError: If a model's embeddings cannot be scored.
        MissingExtraError: If `semantic_retrieval` is given and faiss is not installed.
    """
    reporter = reporter or SilentReporter()
    for name, value, minimum in (("nlist", nlist, 1), ("nprobe", nprobe, 1), ("bitext_rows", bitext_rows, 2)):
        if not isinstance(value, int) or value < minimum:
            raise InputError(f"{name} is {value}; expected an integer of at least {minimum}")
    if catalog is not None and not entities:
        raise InputError("catalog is given without entities; expected files of queries in entities")
    encoders = [*([] if against is None else [against]), *_as_models(models)]
    names = _unique_names(encoders)
    reference = None if against is None else names[0]
    earlier = None if add_to is None else _read_earlier(add_to, reference, semantic_retrieval)
    searches = [make_retrieval_task(each) for each in as_retrieval_tasks(semantic_retrieval, "semantic_retrieval")]
    retrieval_sets, bitext_paths = as_retrieval_tasks(retrieval), as_list("bitext", bitext)
    tasks: list[Task] = [
        *as_sts_tasks(sts),
        *retrieval_sets,
        *asymmetric_tasks(retrieval_sets, documents_by),
        *(
            read_entities(Path(each), None if catalog is None else Path(catalog))
            for each in as_list("entities", entities)
        ),
        *(read_geometry(each, positives_above) for each in as_list("geometry", geometry, SentencePairs)),
        *read_transfer([Path(each) for each in as_list("transfer", transfer)]),
        *(task for each in as_list("glue", glue) for task in read_glue(Path(each))),
        *(read_word_order(os.fspath(each)) for each in as_list("word_order", word_order)),
        *map(read_cross_lingual_sts, as_list("cross_lingual_sts", cross_lingual_sts)),
        *map(read_cross_lingual_retrieval, as_list("cross_lingual_retrieval", cross_lingual_retrieval)),
        *([read_bitext(bitext_paths, bitext_rows)] if bitext_paths else []),
    ]
    if not tasks and not searches:
        raise InputError(f"no tasks to evaluate on; expected at least one of: {', '.join(TASK_ARGUMENTS)}")
    if searches:
        import_faiss()
    loaders = {name: find_encoder(encoder) for name, encoder in zip(names, encoders, strict=True)}

    settings = IVFSettings(nlist, nprobe)
    results = {}
    if earlier is not None and reference is not None:
        known = earlier.models[0]
        results[reference] = _ModelResult(known.reference_parameters, known.reference_scores, ())
    for name in [each for each in loaders if each not in results]:
        results[name] = _score_model(name, loaders[name](), tasks, searches, settings, reporter)
        if earlier is not None:
            earlier.check_tasks(name, results[name].scores)
    scores = _add_searches(results, searches, settings, reporter)
    evaluations = [
        ModelEvaluation(
            name,
            scores[name],
            reference,
            scores[reference] if reference is not None else (),
            results[name].parameters,
            results[reference].parameters if reference is not None else None,
        )
        for name in (names if reference is None else names[1:])
    ]
    kept = [] if earlier is None else [each for each in earlier if each.model not in names]
    return EvaluationReport((*kept, *evaluations))


@dataclass(frozen=True)
class _ModelResult:
    """Scores of a model, and the indexes that wait for those of the other models, because searches are interleaved."""

    parameters: Parameters | None
    scores: tuple[Score, ...]
    indexes: tuple[IVFIndex, ...]


def _read_earlier(file: PathLike, reference: str | None, semantic_retrieval: object) -> EvaluationReport:
    if semantic_retrieval:
        raise InputError("add_to is given with semantic_retrieval, whose times compare only within a run; omit one")
    report = read_evaluation(os.fspath(file))
    if (found := report.models[0].reference) != reference:
        raise InputError(f"{file} has the reference {found}, but against is {reference}; expected the same one")
    return report


def _as_models(models: EncoderLike | Sequence[EncoderLike]) -> list[EncoderLike]:
    found = list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    if not found:
        raise InputError("no models to evaluate; expected at least one")
    return found


def _unique_names(encoders: Sequence[EncoderLike]) -> list[str]:
    """Return the name of each encoder; the same object has the same name, different objects have different names."""
    keys = [each if isinstance(each, str | os.PathLike) else id(each) for each in encoders]
    short = {key: encoder_name(encoder) for key, encoder in zip(keys, encoders, strict=True)}
    unique = dict(zip(short, unique_names([*short.values()], [*short.values()]), strict=True))
    return [unique[key] for key in keys]


def _score_model(
    name: str,
    encoder: SentenceEncoder,
    tasks: Sequence[Task],
    searches: Sequence[RetrievalTask],
    settings: IVFSettings,
    reporter: Reporter,
) -> _ModelResult:
    scores = score_tasks(name, encoder, tasks, reporter)
    indexes = []
    for task in searches:
        with reporter.step(f"{name} on {task.name}, IVF index"):
            indexes.append(build_index(encoder, task, settings))
    return _ModelResult(count_parameters(encoder), scores, tuple(indexes))


def _add_searches(
    results: Mapping[str, _ModelResult], searches: Sequence[RetrievalTask], settings: IVFSettings, reporter: Reporter
) -> dict[str, tuple[Score, ...]]:
    scores = {name: result.scores for name, result in results.items()}
    for number, task in enumerate(searches):
        with reporter.step(f"searching {task.name}"):
            indexes = {name: result.indexes[number] for name, result in results.items()}
            for name, score in score_semantic_retrieval(indexes, task, settings).items():
                scores[name] = (*scores[name], score)
    return scores
