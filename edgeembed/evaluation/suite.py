"""Evaluation tasks of all kinds: read them from files, and score an encoder on them."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgeembed_runtime.errors import InputError, short_repr

from edgeembed.corpus.pairs import SentencePairs, read_sts
from edgeembed.evaluation.asymmetric import AsymmetricRetrieval, score_asymmetric_retrieval
from edgeembed.evaluation.bitext import BitextSet, score_bitext
from edgeembed.evaluation.cross_lingual import (
    CrossLingualRetrieval,
    CrossLingualSTS,
    score_cross_lingual_retrieval,
    score_cross_lingual_sts,
)
from edgeembed.evaluation.encoders import SentenceEncoder
from edgeembed.evaluation.entity_resolution import EntitySet, score_entities
from edgeembed.evaluation.geometry import GeometrySet, score_geometry
from edgeembed.evaluation.glue import GlueTask, score_glue
from edgeembed.evaluation.retrieval import RetrievalSet, read_retrieval, score_retrieval
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.sts import read_sts_suite, score_sts
from edgeembed.evaluation.transfer import TransferSet, score_transfer
from edgeembed.evaluation.word_order import WordOrderSet, score_word_order
from edgeembed.progress import Reporter

Task = (
    SentencePairs
    | RetrievalSet
    | AsymmetricRetrieval
    | EntitySet
    | GeometrySet
    | TransferSet
    | GlueTask
    | WordOrderSet
    | CrossLingualSTS
    | CrossLingualRetrieval
    | BitextSet
)
PathLike = str | os.PathLike[str]
STSLike = PathLike | SentencePairs
"""A file of scored sentence pairs, a folder of the seven STS sets, or pairs that were read."""
RetrievalLike = PathLike | RetrievalSet
"""A BEIR folder, a file of duplicate questions, or a retrieval set that was read."""

_SCORERS: Mapping[type[Task], Callable[[SentenceEncoder, Any], Score | list[Score]]] = {
    SentencePairs: score_sts,
    RetrievalSet: score_retrieval,
    AsymmetricRetrieval: score_asymmetric_retrieval,
    EntitySet: score_entities,
    GeometrySet: score_geometry,
    TransferSet: score_transfer,
    GlueTask: score_glue,
    WordOrderSet: score_word_order,
    CrossLingualSTS: score_cross_lingual_sts,
    CrossLingualRetrieval: score_cross_lingual_retrieval,
    BitextSet: score_bitext,
}


def as_list(name: str, value: object, *types: type) -> list[Any]:
    """Return the value of an argument that takes one path, or a list of paths, as a list.

    Args:
        name: Name of the argument, for the error message.
        value: Its value.
        types: Types of data sets that the argument takes as well.

    Raises:
        InputError: If the value holds anything else.
    """
    items = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    for item in items:
        if not isinstance(item, (str, os.PathLike, *types)):
            raise InputError(f"{name} is {short_repr(value)}; expected a path, or a list of paths")
    return items


def as_sts_tasks(sts: STSLike | Sequence[STSLike]) -> list[SentencePairs]:
    """Read the argument `sts` of `evaluate`.

    Args:
        sts: Files in the format of `read_sts`, folders as `read_sts_suite` takes them, or pairs that were read.

    Returns:
        The sentence pairs of the files, and the STS sets of the folders.

    Raises:
        InputError: If one cannot be read.
    """
    tasks: list[SentencePairs] = []
    for item in as_list("sts", sts, SentencePairs):
        if isinstance(item, SentencePairs):
            tasks.append(item)
        else:
            path = Path(item)
            tasks += read_sts_suite(path) if path.is_dir() else [read_sts(path)]
    return tasks


def as_retrieval_tasks(
    retrieval: RetrievalLike | Sequence[RetrievalLike], name: str = "retrieval"
) -> list[RetrievalSet]:
    """Read the argument `retrieval` of `evaluate`.

    Args:
        retrieval: Folders or files as `read_retrieval` takes them, or sets that were read.
        name: Name of the argument, for error messages.

    Raises:
        InputError: If one cannot be read.
    """
    items = as_list(name, retrieval, RetrievalSet)
    return [item if isinstance(item, RetrievalSet) else read_retrieval(Path(item)) for item in items]


def score_tasks(name: str, encoder: SentenceEncoder, tasks: Sequence[Task], reporter: Reporter) -> tuple[Score, ...]:
    """Score an encoder on tasks, in order.

    Args:
        name: Name of the encoder, for progress reports.
        encoder: The encoder.
        tasks: The tasks.
        reporter: Receives the progress.

    Raises:
        CheckError: If embeddings cannot be scored.
    """
    scores: list[Score] = []
    for task in tasks:
        with reporter.step(f"{name} on {task.name}"):
            result = _SCORERS[type(task)](encoder, task)
            scores.extend(result if isinstance(result, list) else [result])
    return tuple(scores)
