"""Candidate search: recall of the binary prefilter and of faiss, additions, removals, saved arrays."""

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import Engine, InputError, MissingExtraError
from edgeembed_runtime.index.candidates import (
    CandidateSearch,
    Positions,
    _hamming_distances,
    new_candidate_search,
    pack_signs,
)
from edgeembed_runtime.index.engine import EngineName, IndexPrecision
from edgeembed_runtime.index.vectors import StoredVectors
from edgeembed_runtime.similarity import top_k_indices

Vectors = npt.NDArray[np.float32]

_DIMENSION = 32


@pytest.fixture(scope="module")
def clustered() -> Vectors:
    """Return 1,500 vectors around 60 centers."""
    random = np.random.default_rng(0)
    centers = random.standard_normal((60, _DIMENSION))
    rows = centers[random.integers(0, 60, 1500)] + 0.7 * random.standard_normal((1500, _DIMENSION))
    units: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return units


def _search(engine: Engine, precision: IndexPrecision = "float32", dimension: int = _DIMENSION) -> CandidateSearch:
    if engine.name != "numpy":
        pytest.importorskip("faiss")
    search = new_candidate_search(engine, precision, dimension)
    assert search is not None
    return search


def _candidates(search: CandidateSearch, vectors: StoredVectors, query: Vectors, top_k: int) -> Positions | None:
    search.update(vectors)
    assert search.is_current(vectors)
    return search.candidates(query, top_k)


def _recall(search: CandidateSearch, vectors: StoredVectors, queries: Vectors, top_k: int = 10) -> float:
    """Return the share of the true nearest vectors that are among the candidates."""
    shares = []
    for query in queries:
        positions = _candidates(search, vectors, query, top_k)
        best = set(top_k_indices(vectors.cosine_similarity(query), top_k).tolist())
        shares.append(1.0 if positions is None else len(best.intersection(positions.tolist())) / top_k)
    return float(np.mean(shares))


@pytest.mark.parametrize(
    ("engine", "precision"),
    [
        (Engine("faiss-ivf"), "float32"),
        (Engine("faiss-hnsw"), "float32"),
        (Engine("faiss-ivf", nlist=20, nprobe=4), "int8"),
        (Engine(), "binary"),
    ],
)
def test_candidates_have_high_recall(engine: Engine, precision: IndexPrecision, clustered: Vectors) -> None:
    vectors = StoredVectors.quantize(clustered, precision)
    queries = clustered[::100] + np.float32(0.05)
    assert _recall(_search(engine, precision), vectors, queries) > 0.9


@pytest.mark.parametrize("name", ["faiss-ivf", "faiss-hnsw"])
@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_faiss_searches_few_documents_without_warnings(
    name: EngineName, count: int, clustered: Vectors, capfd: pytest.CaptureFixture[str]
) -> None:
    vectors = StoredVectors.quantize(clustered[:count], "float32")
    positions = _candidates(_search(Engine(name, nlist=100, nprobe=100)), vectors, clustered[0], 1)
    assert positions is None or 0 in positions
    assert capfd.readouterr() == ("", "")


def test_all_vectors_are_compared_if_the_lists_hold_too_few(clustered: Vectors) -> None:
    vectors = StoredVectors.quantize(clustered, "float32")
    assert _candidates(_search(Engine("faiss-ivf", nlist=200, nprobe=1)), vectors, clustered[0], 500) is None


@pytest.mark.parametrize(
    ("engine", "precision"),
    [(Engine(), "binary"), (Engine("faiss-ivf"), "float32"), (Engine("faiss-hnsw"), "float32")],
)
def test_candidates_follow_additions_and_removals(
    engine: Engine, precision: IndexPrecision, clustered: Vectors
) -> None:
    vectors = StoredVectors.quantize(clustered[:50], precision)
    search = _search(engine, precision)
    search.update(vectors)
    vectors = vectors.append(clustered[50:])
    assert not search.is_current(vectors)
    assert _recall(search, vectors, clustered[::100]) > 0.9
    kept = np.arange(500, 1400)
    vectors, search = vectors.select(kept), search.select(kept)
    assert _recall(search, vectors, clustered[::100]) > 0.9
    fewer = vectors.select(np.arange(150))  # as if an addition had been interrupted
    assert not search.is_current(fewer)
    positions = _candidates(search, fewer, clustered[500], 5)
    assert positions is None or positions.max() < 150


@pytest.mark.parametrize("engine", [Engine("faiss-ivf"), Engine()])
def test_saved_arrays_return_the_same_candidates(engine: Engine, clustered: Vectors) -> None:
    precision: IndexPrecision = "binary" if engine.name == "numpy" else "float32"
    vectors = StoredVectors.quantize(clustered, precision)
    search = _search(engine, precision)
    search.update(vectors)
    arrays = {name: np.array(array) for name, array in search.arrays().items()}
    assert len(arrays) == 1
    again = new_candidate_search(engine, precision, _DIMENSION, arrays)
    assert again is not None
    for query in clustered[::200]:
        expected = _candidates(search, vectors, query, 10)
        positions = _candidates(again, vectors, query, 10)
        assert expected is not None
        assert positions is not None
        assert positions.tolist() == expected.tolist()
    opposite = -clustered[0]
    positions = _candidates(again, vectors.append(opposite[None]), opposite, 10)
    assert positions is not None
    assert len(clustered) in positions


def test_centroids_that_are_not_finite_raise() -> None:
    pytest.importorskip("faiss")
    damaged = {"centroids": np.full((2, _DIMENSION), np.nan, dtype=np.float32)}
    with pytest.raises(InputError, match="centroid of the index is not finite"):
        new_candidate_search(Engine("faiss-ivf"), "float32", _DIMENSION, damaged)


@pytest.mark.parametrize("dimension", [1, 8, 63, 64, 65, 256])
def test_hamming_distance_counts_differing_signs(dimension: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).standard_normal((20, dimension))
    expected = ((rows > 0) != (rows[:1] > 0)).sum(axis=1).tolist()
    assert _hamming_distances(pack_signs(rows), pack_signs(rows[:1])).tolist() == expected
    monkeypatch.delattr(np, "bitwise_count", raising=False)  # as numpy 1 has none
    assert _hamming_distances(pack_signs(rows), pack_signs(rows[:1])).tolist() == expected


def test_missing_faiss_raises_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'edgeembed-runtime\[faiss\]'"):
        new_candidate_search(Engine("faiss-ivf"), "float32", _DIMENSION)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"name": "annoy"}, "the engine is 'annoy', expected one of numpy, faiss-ivf, faiss-hnsw"),
        ({"nlist": 0}, "nlist is 0, expected an integer from 1 to 1,000,000"),
        ({"nprobe": True}, "nprobe is True"),
        ({"m": 1}, "m is 1, expected an integer from 2 to 256"),
        ({"ef_search": 1.5}, "ef_search is 1.5"),
        ({"rescore": "4"}, "rescore is '4'"),
    ],
)
def test_engine_settings_out_of_range_raise(setting: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Engine(**setting)  # type: ignore[arg-type]


def test_faiss_does_not_support_the_precision_binary() -> None:
    with pytest.raises(InputError, match="expected numpy for the precision binary"):
        new_candidate_search(Engine("faiss-ivf"), "binary", _DIMENSION)


def test_engine_settings_are_keyword_only() -> None:
    with pytest.raises(TypeError, match="positional"):
        Engine("faiss-ivf", 100)  # type: ignore[call-arg]
