"""Candidates: the exact finders miss nothing, the others little."""

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import Engine, InputError, MissingExtraError
from edgeembed_runtime.index.engine import IndexPrecision
from edgeembed_runtime.index.finders import Finder, new_finder
from edgeembed_runtime.index.finders.signs import _differing, _signs
from edgeembed_runtime.index.stored_vectors import StoredVectors
from edgeembed_runtime.similarity import top_k_indices
from hypothesis import given, settings
from hypothesis import strategies as st

Vectors = npt.NDArray[np.float32]

_DIMENSION = 32


@pytest.fixture(scope="module")
def clustered() -> Vectors:
    """Give 1,500 vectors around 60 centers."""
    random = np.random.default_rng(0)
    centers = random.standard_normal((60, _DIMENSION))
    rows = centers[random.integers(0, 60, 1500)] + 0.7 * random.standard_normal((1500, _DIMENSION))
    units: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return units


def _finder(engine: Engine, precision: IndexPrecision = "float32", dimension: int = _DIMENSION) -> Finder:
    if engine.name != "numpy":
        pytest.importorskip("faiss")
    finder = new_finder(engine, precision, dimension)
    assert finder is not None
    return finder


def _recall(finder: Finder, vectors: StoredVectors, queries: Vectors, k: int = 10) -> float:
    """Give the share of the true best that are among the candidates."""
    shares = []
    for query in queries:
        found = finder.candidates(vectors, query, k)
        best = set(top_k_indices(vectors.cosines(query), k).tolist())
        shares.append(1.0 if found is None else len(best.intersection(found.tolist())) / k)
    return float(np.mean(shares))


@settings(max_examples=40, deadline=None)
@given(kinds=st.integers(1, 12), count=st.integers(1, 200), k=st.integers(1, 60), seed=st.integers(0, 1000))
def test_faiss_flat_gives_the_exact_best_of_random_vectors_and_duplicates(
    kinds: int, count: int, k: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    units = random.standard_normal((kinds, _DIMENSION)).astype(np.float32)[random.integers(0, kinds, count)]
    vectors = StoredVectors.of(units / np.linalg.norm(units, axis=1, keepdims=True), "float32")
    query = vectors.rows[0]
    found = _finder(Engine("faiss-flat")).candidates(vectors, query, k)
    best = top_k_indices(vectors.cosines(query), k)
    if found is not None:
        assert found[top_k_indices(vectors.cosines(query, found), k)].tolist() == best.tolist()


def test_faiss_flat_looks_further_where_the_border_is_a_tie(clustered: Vectors) -> None:
    vectors = StoredVectors.of(np.concatenate([clustered[:1]] * 40 + [clustered]), "float32")
    found = _finder(Engine("faiss-flat")).candidates(vectors, clustered[0], 10)
    assert found is not None
    assert set(range(41)) <= set(found.tolist())


@pytest.mark.parametrize(
    ("engine", "precision"),
    [
        (Engine("faiss-ivf"), "float32"),
        (Engine("faiss-hnsw"), "float32"),
        (Engine("faiss-ivf", nlist=20, nprobe=4), "int8"),
        (Engine(), "binary"),
    ],
)
def test_the_others_miss_little(engine: Engine, precision: IndexPrecision, clustered: Vectors) -> None:
    vectors = StoredVectors.of(clustered, precision)
    queries = clustered[::100] + np.float32(0.05)
    assert _recall(_finder(engine, precision), vectors, queries) > 0.9


@pytest.mark.parametrize("name", ["faiss-flat", "faiss-ivf", "faiss-hnsw"])
@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_few_documents_are_enough(name: str, count: int, clustered: Vectors, capfd: pytest.CaptureFixture[str]) -> None:
    vectors = StoredVectors.of(clustered[:count], "float32")
    finder = _finder(Engine(name, nlist=100, nprobe=100))  # type: ignore[arg-type]
    found = finder.candidates(vectors, clustered[0], 1)
    assert found is None or 0 in found
    assert capfd.readouterr() == ("", "")


def test_lists_that_hold_fewer_than_asked_for_stand_for_all(clustered: Vectors) -> None:
    vectors = StoredVectors.of(clustered, "float32")
    assert _finder(Engine("faiss-ivf", nlist=200, nprobe=1)).candidates(vectors, clustered[0], 500) is None


@pytest.mark.parametrize(
    ("engine", "precision"),
    [
        (Engine(), "binary"),
        (Engine("faiss-flat"), "float32"),
        (Engine("faiss-ivf"), "float32"),
        (Engine("faiss-hnsw"), "float32"),
    ],
)
def test_vectors_may_come_and_go(engine: Engine, precision: IndexPrecision, clustered: Vectors) -> None:
    vectors = StoredVectors.of(clustered[:50], precision)
    finder = _finder(engine, precision)
    finder.refresh(vectors)
    vectors = vectors.followed_by(clustered[50:])
    assert _recall(finder, vectors, clustered[::100]) > 0.9
    kept = np.arange(500, 1400)
    vectors, finder = vectors.kept(kept), finder.kept(kept)
    assert _recall(finder, vectors, clustered[::100]) > 0.9
    fewer = vectors.kept(np.arange(150))  # as if an addition had been interrupted
    found = finder.candidates(fewer, clustered[500], 5)
    assert found is None or found.max() < 150


@pytest.mark.parametrize("engine", [Engine("faiss-ivf"), Engine("faiss-hnsw"), Engine()])
def test_what_was_kept_finds_the_same(engine: Engine, clustered: Vectors) -> None:
    precision: IndexPrecision = "binary" if engine.name == "numpy" else "float32"
    vectors = StoredVectors.of(clustered, precision)
    finder = _finder(engine, precision)
    finder.refresh(vectors)
    arrays = {name: np.array(array) for name, array in finder.arrays().items()}
    assert len(arrays) == 1
    again = new_finder(engine, precision, _DIMENSION, arrays)
    assert again is not None
    for query in clustered[::200]:
        expected = finder.candidates(vectors, query, 10)
        found = again.candidates(vectors, query, 10)
        assert expected is not None
        assert found is not None
        assert found.tolist() == expected.tolist()
    opposite = -clustered[0]
    found = again.candidates(vectors.followed_by(opposite[None]), opposite, 10)
    assert found is not None
    assert len(clustered) in found


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_a_graph_that_leads_out_of_the_vectors_is_made_again(data: st.DataObject, clustered: Vectors) -> None:
    pytest.importorskip("faiss")
    vectors = StoredVectors.of(clustered[:300], "float32")
    engine = Engine("faiss-hnsw", m=4)
    finder = _finder(engine)
    finder.refresh(vectors)
    neighbours = np.array(finder.arrays()["neighbours"])
    places = data.draw(st.lists(st.integers(0, len(neighbours) - 1), min_size=1, max_size=20))
    numbers = st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-1, 299))
    neighbours[places] = data.draw(st.lists(numbers, min_size=len(places), max_size=len(places)))
    again = new_finder(engine, "float32", _DIMENSION, {"neighbours": neighbours})
    assert again is not None
    found = again.candidates(vectors, clustered[0], 10)
    assert found is None or (found.min() >= 0 and found.max() < 300)


def test_centroids_that_are_not_finite_are_refused() -> None:
    pytest.importorskip("faiss")
    damaged = {"centroids": np.full((2, _DIMENSION), np.nan, dtype=np.float32)}
    with pytest.raises(InputError, match="centroid of the index is not finite"):
        new_finder(Engine("faiss-ivf"), "float32", _DIMENSION, damaged)


@pytest.mark.parametrize("dimension", [1, 8, 63, 64, 65, 256])
def test_signs_differ_where_the_numbers_do(dimension: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).standard_normal((20, dimension))
    expected = ((rows > 0) != (rows[:1] > 0)).sum(axis=1).tolist()
    assert _differing(_signs(rows), _signs(rows[:1])).tolist() == expected
    monkeypatch.delattr(np, "bitwise_count", raising=False)  # as numpy 1 has none
    assert _differing(_signs(rows), _signs(rows[:1])).tolist() == expected


def test_faiss_that_is_absent_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'edgeembed-runtime\[faiss\]'"):
        new_finder(Engine("faiss-flat"), "float32", _DIMENSION)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"name": "annoy"}, "the engine is 'annoy', expected one of numpy, faiss-flat, faiss-ivf, faiss-hnsw"),
        ({"nlist": 0}, "nlist is 0, expected a whole number from 1 to 1,000,000"),
        ({"nprobe": True}, "nprobe is True"),
        ({"m": 1}, "m is 1, expected a whole number from 2 to 256"),
        ({"ef_search": 1.5}, "ef_search is 1.5"),
        ({"rescore": "4"}, "rescore is '4'"),
    ],
)
def test_a_setting_outside_its_range_is_refused(setting: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Engine(**setting)  # type: ignore[arg-type]


def test_signs_are_no_precision_that_faiss_searches() -> None:
    with pytest.raises(InputError, match="expected numpy for the precision binary"):
        new_finder(Engine("faiss-flat"), "binary", _DIMENSION)


def test_a_setting_is_given_by_its_name() -> None:
    with pytest.raises(TypeError, match="positional"):
        Engine("faiss-ivf", 100)  # type: ignore[call-arg]
