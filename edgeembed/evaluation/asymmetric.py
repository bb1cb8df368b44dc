"""Asymmetric retrieval: queries by the model that is evaluated, documents by another one, usually its teacher."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.encoders import (
    CachingEncoder,
    EncoderLike,
    SentenceEncoder,
    encode_texts,
    encoder_name,
    find_encoder,
)
from edgeembed.evaluation.retrieval import RetrievalSet, score_retrieval
from edgeembed.evaluation.scores import Score


class DocumentEncoder:
    """The encoder of the documents: loaded when it is first used; each text is encoded once for all models.

    Args:
        encoder: The encoder.

    Raises:
        InputError: If there is no such model.
    """

    def __init__(self, encoder: EncoderLike) -> None:
        self.name = encoder_name(encoder)
        self._load = find_encoder(encoder)

    @cached_property
    def encoder(self) -> CachingEncoder:
        """The loaded encoder."""
        return CachingEncoder(self._load())

    @cached_property
    def dimension(self) -> int:
        """The dimension of an embedding."""
        return int(encode_texts(self.encoder.encode_document, ["a"]).shape[1])


@dataclass(frozen=True)
class AsymmetricRetrieval:
    """A retrieval set whose documents another model encodes.

    Attributes:
        retrieval: The set.
        documents_by: The encoder of the documents.
    """

    retrieval: RetrievalSet
    documents_by: DocumentEncoder

    @property
    def name(self) -> str:
        """The set's name, and that of the encoder of the documents."""
        return f"{self.retrieval.name}, documents by {self.documents_by.name}"


def asymmetric_tasks(sets: Sequence[RetrievalSet], documents_by: EncoderLike | None) -> list[AsymmetricRetrieval]:
    """Return the retrieval sets as tasks whose documents another model encodes; none if there is no such model.

    Args:
        sets: The retrieval sets.
        documents_by: The encoder of the documents, as for `evaluate`; None if each model encodes its own.

    Raises:
        InputError: If there is no such model, or there are no sets.
    """
    if documents_by is None:
        return []
    if not sets:
        raise InputError("documents_by is given without retrieval; expected retrieval sets")
    encoder = DocumentEncoder(documents_by)
    return [AsymmetricRetrieval(each, encoder) for each in sets]


def score_asymmetric_retrieval(encoder: SentenceEncoder, task: AsymmetricRetrieval) -> Score:
    """Score the queries of an encoder by exact search over documents that another model encoded.

    The scores are meaningful if both have one embedding space, as a student that learned its teacher's embeddings.

    Args:
        encoder: The encoder of the queries.
        task: The retrieval set, and the encoder of its documents.

    Returns:
        As `score_retrieval`.

    Raises:
        InputError: If the embeddings of the two encoders differ in dimension.
        CheckError: If embeddings are not finite.
    """
    documents, dimension = task.documents_by, encode_texts(encoder.encode_query, ["a"]).shape[1]
    if dimension != documents.dimension:
        raise InputError(
            f"the queries have {dimension} dimensions and the documents by {documents.name} have "
            f"{documents.dimension}; expected encoders of one embedding space"
        )
    score = score_retrieval(_Pair(encoder, documents.encoder), task.retrieval)
    return replace(score, task=task.name)


class _Pair:
    """Encodes queries with one encoder and documents with another."""

    def __init__(self, queries: SentenceEncoder, documents: SentenceEncoder) -> None:
        self.encode = self.encode_query = queries.encode_query
        self.encode_document: Any = documents.encode_document
