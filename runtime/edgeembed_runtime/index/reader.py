"""Read access to the documents of an index: by id, in order, and by search."""

from collections.abc import Iterator
from typing import Any, overload

import numpy.typing as npt

from edgeembed_runtime._retrieval_inputs import known_query_vectors, query_texts, query_vectors
from edgeembed_runtime._validation import validate_min_score, validate_top_k
from edgeembed_runtime.documents import Document, DocumentId, Hit, validate_ids
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.index.collection import Collection
from edgeembed_runtime.index.engine import SEARCH_METHODS, SearchMethod
from edgeembed_runtime.index.filters import MetadataFilter, parse_filter
from edgeembed_runtime.index.hybrid import HIGHEST_FUSED_SCORE, hybrid_documents, keyword_documents
from edgeembed_runtime.index.nearest import nearest_documents
from edgeembed_runtime.index.ranking import Ranking, Selection


class IndexReader:
    """Gives access to the documents of an index. `Index` derives from it.

    Args:
        encoder: The encoder of queries.
        collection: The documents.
    """

    def __init__(self, encoder: Encoder, collection: Collection) -> None:
        self._encoder = encoder
        self._collection = collection

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._collection.rows.table)

    def __iter__(self) -> Iterator[Document]:
        """Yield the documents that are in the index now, in the order of their addition."""
        return iter(self._collection.rows.table)

    def __contains__(self, document_id: object) -> bool:
        """Return whether there is a document with this id."""
        try:
            return self.get(document_id) is not None  # type: ignore[arg-type] # validated there
        except InputError:
            return False

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return self._encoder.dimension

    def get(self, document_id: DocumentId) -> Document | None:
        """Return the document with an id, or None if there is none.

        Raises:
            InputError: If the id is neither an integer nor a str.
        """
        (valid,) = validate_ids([document_id])
        table = self._collection.rows.table
        position = table.position(valid)
        return None if position is None else table[position]

    @overload
    def search(
        self,
        queries: str | list[float],
        top_k: int | None = ...,
        *,
        filter: MetadataFilter | None = ...,
        min_score: float | None = ...,
        method: SearchMethod = ...,
    ) -> list[Hit]: ...

    @overload
    def search(
        self,
        queries: list[str] | tuple[str, ...] | list[list[float]],
        top_k: int | None = ...,
        *,
        filter: MetadataFilter | None = ...,
        min_score: float | None = ...,
        method: SearchMethod = ...,
    ) -> list[list[Hit]]: ...

    @overload
    def search(
        self,
        queries: npt.NDArray[Any],
        top_k: int | None = ...,
        *,
        filter: MetadataFilter | None = ...,
        min_score: float | None = ...,
        method: SearchMethod = ...,
    ) -> Any: ...

    def search(
        self,
        queries: str | npt.ArrayLike,
        top_k: int | None = 10,
        *,
        filter: MetadataFilter | None = None,  # noqa: A002 - the name that vector databases use
        min_score: float | None = None,
        method: SearchMethod = "embedding",
    ) -> Any:
        """Return the documents that match a query best, or each of several queries.

        A document that was split into passages scores as its best passage, which is the hit's `passage`.

        Args:
            queries: A text, a list of texts, or embeddings, (dimension,) or (queries, dimension). Keywords need texts.
            top_k: The maximum number of hits per query; None returns all documents.
            filter: Which documents to search: a dict of fields with values, or with operators ($eq, $ne, $gt, $gte,
                $lt, $lte, $in, $nin, $exists, $contains, $and, $or, $not), or a function of the metadata. See
                `edgeembed_runtime.index.filters.parse_filter`. All documents that match are scored exactly, whatever
                the engine.
            min_score: The lowest score of a hit, on the scale of the method; None means no minimum. For "hybrid" it is
                at most 2 / 61, the highest score that there is: a cosine as minimum would silently find nothing.
            method: "embedding" ranks by the cosine similarity of embeddings, from -1 to 1. "bm25" ranks by BM25 the
                documents that share words with the query; scores are above 0 without a limit. "hybrid" ranks by
                reciprocal rank fusion of both, each down to rank 1,000 or `top_k`; scores are above 0 and at most 2 /
                61, and depend on ranks alone. The last two need the extra `hybrid`, and leave out documents that they
                do not find. Their first search, and the first one after a change of texts, counts the words of all
                documents.

        Returns:
            The hits, best first; ties are in the order in which the documents were added. For a list of queries, a list
            of hits per query.

        Raises:
            InputError: If a query is invalid or blank, `top_k` is below 1, `min_score` is above every score of a hybrid
                search, the method is unknown, or the filter is invalid.
            MissingExtraError: If the method needs bm25s, which is not installed.
        """
        validate_top_k(top_k)
        if method not in SEARCH_METHODS:
            raise InputError(f"the method is {short_repr(method)}, expected one of {', '.join(SEARCH_METHODS)}")
        _check_min_score(min_score, method)
        predicate = None if filter is None else parse_filter(filter)
        selection = None if predicate is None else Selection.of(self._collection.checked_rows(), predicate)
        limit = None if top_k is None else int(top_k)
        rankings, is_single = self._rankings(queries, limit, selection, method)
        hits = [ranking.hits(None if min_score is None else float(min_score)) for ranking in rankings]
        return hits[0] if is_single else hits

    def _rankings(
        self, queries: Any, top_k: int | None, selection: Selection | None, method: SearchMethod
    ) -> tuple[Iterator[Ranking], bool]:
        """Return the documents for each query, and whether it was one query, not a list."""
        if method == "embedding":
            vectors, is_single = query_vectors(self._encoder, queries)
            return nearest_documents(self._collection, vectors, top_k, selection), is_single
        texts, is_single = query_texts(queries)
        if method == "bm25":
            return keyword_documents(self._collection, texts, top_k, selection), is_single
        vectors = known_query_vectors(self._encoder, texts)
        return hybrid_documents(self._collection, texts, vectors, top_k, selection), is_single


def _check_min_score(min_score: float | None, method: SearchMethod) -> None:
    """Raise InputError unless `min_score` is None or a number that a hybrid search can reach, if it is one."""
    validate_min_score(min_score)
    if method == "hybrid" and min_score is not None and min_score > HIGHEST_FUSED_SCORE:
        raise InputError(
            f"min_score is {short_repr(min_score)}, expected at most {HIGHEST_FUSED_SCORE:.4f} with method='hybrid', "
            "whose scores are no cosines; leave it out, or search with method='embedding'"
        )
