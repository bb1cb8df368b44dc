"""Documents in the order in which they answer a query."""

from collections.abc import Iterable

import numpy.typing as npt

from edgeembed_runtime._validation import (
    document_vectors,
    query_vector,
    validate_encoder,
    validate_texts,
    validate_top_k,
)
from edgeembed_runtime._warnings import warn_of_other_role
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.hits import Hit
from edgeembed_runtime.index.stored_vectors import StoredVectors
from edgeembed_runtime.similarity import top_k_indices


class RelevanceRanker:
    """Ranks documents by the cosine of their vectors with a query's.

    Args:
        encoder: What gives the vectors.

    Raises:
        InputError: If `encoder` is none.

    Warns:
        RoleWarning: If its bundle was exported for semantic ranking alone.
    """

    def __init__(self, encoder: Encoder) -> None:
        validate_encoder(encoder)
        warn_of_other_role(encoder, "relevance")
        self._encoder = encoder

    def rank(
        self,
        query: str | npt.ArrayLike,
        documents: Iterable[str],
        top_k: int | None = None,
        *,
        embeddings: npt.ArrayLike | None = None,
    ) -> list[Hit]:
        """Give the documents, best first; of equally good ones the earlier first.

        Args:
            query: What is looked for: a text, or its vector, (dimension,).
            documents: The texts to rank.
            top_k: How many hits to give at most; None, the default, ranks all.
            embeddings: The documents' embeddings, (documents, dimension), where they are known already: the texts are
                then not encoded. They need not have unit length. A vector of zeros scores 0.

        Returns:
            Hits, none if there are no documents.

        Raises:
            InputError: If the query or a document is not a text, the query is blank, a vector has another shape or
                type or is not finite, or `top_k` is below 1.
        """
        validate_top_k(top_k)
        texts = validate_texts(documents, "document")
        wanted = query_vector(self._encoder, query)
        scores = StoredVectors.of(document_vectors(self._encoder, texts, embeddings), "float32").cosines(wanted)
        return [Hit(int(i), float(scores[i]), texts[i]) for i in top_k_indices(scores, top_k)]
