"""Find the documents of an index that are nearest to queries."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.index.collection import Collection
from edgeembed_runtime.index.ranking import Ranking, Selection

# Similarities that are computed for several queries at a time: 64 MiB.
_MAX_SIMILARITIES = 1 << 24


def nearest_documents(
    collection: Collection, queries: npt.NDArray[np.float32], top_k: int | None, selection: Selection | None
) -> Iterator[Ranking]:
    """Yield the documents nearest to each query.

    If the collection is exact, or some documents were selected, each of these is compared with the queries.

    Args:
        collection: The documents.
        queries: (queries, dimension) float32, L2-normalized or zero.
        top_k: The maximum number of documents per query; None means all.
        selection: The documents to compare; None means all.

    Raises:
        InputError: If a mapped file was truncated, or a vector is not finite.
    """
    if selection is None and top_k is not None and not collection.is_exact:
        yield from (_approximately_nearest(collection, query, top_k) for query in queries)
        return
    rows = collection.checked_rows() if selection is None else selection.rows
    positions = None if selection is None else selection.positions
    count = len(rows.vectors) if positions is None else len(positions)
    step = max(1, _MAX_SIMILARITIES // max(count, 1))
    for start in range(0, len(queries), step):
        for similarities in rows.vectors.cosine_similarity(queries[start : start + step], positions):
            yield Ranking.of_best_passages(rows, positions, similarities, top_k)


def _approximately_nearest(collection: Collection, query: npt.NDArray[np.float32], top_k: int) -> Ranking:
    """Return the nearest documents of candidates; fetch more candidates until they belong to `top_k` documents."""
    count = top_k
    while True:
        rows, candidates = collection.candidates(query, count)
        positions = None if candidates is None else rows.with_other_passages(candidates)
        found = Ranking.of_best_passages(rows, positions, rows.vectors.cosine_similarity(query, positions), top_k)
        if candidates is None or len(found.positions) >= top_k:
            return found
        count *= 2
