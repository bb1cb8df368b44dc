"""Nearest neighbors of the sentences of a corpus, by the teacher's embeddings."""


import numpy as np
import numpy.typing as npt
from edgeembed_bench.paper_tables.retrieval import import_faiss

_CANDIDATES = 4
"""Candidates for each neighbor of a batch: most of the nearest ones are in an earlier batch of the epoch already."""
_ROWS_PER_LIST = 180
_PROBES = 8
_TRAINING_ROWS_PER_LIST = 40
_EXACT_ROWS = 20_000
"""Up to so many rows, comparing all with all takes seconds."""


def nearest_neighbors(embeddings: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.int64]:
    """Return candidates for the neighbors of each row, found with a faiss IVF index.

    Args:
        embeddings: L2-normalized, float32 (rows, dimension).
        count: The number of neighbors that are going to be chosen from the candidates.

    Returns:
        Other rows, the most similar first, int64 (rows, candidates): four for each neighbor, or as many as there are.
        A row of which the index finds fewer is filled up with its own number.

    Raises:
        MissingExtraError: If faiss is not installed.
    """
    faiss = import_faiss()
    rows, dimension = embeddings.shape
    index = faiss.IndexFlatIP(dimension)
    if rows > _EXACT_ROWS:
        lists = rows // _ROWS_PER_LIST
        index = faiss.IndexIVFFlat(index, dimension, lists, faiss.METRIC_INNER_PRODUCT)
        index.cp.max_points_per_centroid = _TRAINING_ROWS_PER_LIST
        index.nprobe = _PROBES
        index.train(embeddings)
    index.add(embeddings)
    _, found = index.search(embeddings, 1 + min(rows - 1, count * _CANDIDATES))
    own = np.arange(rows)[:, None]
    found = np.where(found < 0, own, found)
    # Its own row is first, but for copies of it, which have the same embedding.
    order = np.argsort(found != own, axis=1, kind="stable")
    neighbors: npt.NDArray[np.int64] = np.take_along_axis(found, order, axis=1)[:, 1:]
    return neighbors
