"""Stored vectors: cosine similarity in each precision, additions and removals."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import InputError
from edgeembed_runtime._retrieval_inputs import document_embeddings
from edgeembed_runtime.index.engine import IndexPrecision
from edgeembed_runtime.index.vectors import GrowingArray, StoredVectors, _to_float32
from hypothesis import given, settings
from hypothesis import strategies as st

_TYPES: list[tuple[IndexPrecision, type, float]] = [
    ("float32", np.float32, 1e-6),
    ("float16", np.float16, 3e-4),
    ("int8", np.int8, 5e-3),
    ("binary", np.float16, 3e-4),
]


def _units(count: int, dimension: int, seed: int = 0) -> npt.NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((count, dimension))
    units: npt.NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return units


@pytest.mark.parametrize(("precision", "stored_type", "tolerance"), _TYPES)
def test_cosine_similarity_is_close_to_float32(precision: IndexPrecision, stored_type: type, tolerance: float) -> None:
    units, query = _units(3000, 96), _units(1, 96, seed=1)[0]
    vectors = StoredVectors.quantize(units, precision)
    assert vectors.rows.dtype == stored_type
    assert np.abs(vectors.cosine_similarity(query) - units @ query).max() < tolerance
    assert vectors.cosine_similarity(units[7])[7] == pytest.approx(1, abs=tolerance)
    assert vectors.cosine_similarity(query).max() <= 1


@pytest.mark.parametrize(("precision", "stored_type", "_tolerance"), _TYPES)
@settings(max_examples=25, deadline=None)
@given(dimension=st.integers(1, 70), count=st.integers(1, 50), seed=st.integers(0, 1000))
def test_equal_vectors_have_equal_similarity_at_any_position(
    precision: IndexPrecision, stored_type: type, _tolerance: float, dimension: int, count: int, seed: int
) -> None:
    units = _units(2, dimension, seed)
    places = np.random.default_rng(seed).integers(0, 2, count)
    vectors = StoredVectors.quantize(units[places], precision)
    cosines = vectors.cosine_similarity(_units(1, dimension, seed + 1)[0])
    for place in (0, 1):
        assert len(np.unique(cosines[places == place])) <= 1
    some = np.flatnonzero(places == 0)[::-1]
    assert np.array_equal(vectors.cosine_similarity(_units(1, dimension, seed + 1)[0], some), cosines[some])


@pytest.mark.parametrize(("precision", "stored_type", "_tolerance"), _TYPES)
def test_append_and_select_keep_the_other_vectors(
    precision: IndexPrecision, stored_type: type, _tolerance: float
) -> None:
    units, query = _units(40, 24), _units(1, 24, seed=1)[0]
    whole = StoredVectors.quantize(units, precision)
    parts = StoredVectors.quantize(units[:10], precision)
    parts.cosine_similarity(query)  # computes the norms of some vectors
    parts = parts.append(units[10:11]).append(units[11:])
    assert np.array_equal(parts.rows, whole.rows)
    assert np.array_equal(parts.cosine_similarity(query), whole.cosine_similarity(query))
    kept = np.array([3, 17, 39])
    assert np.array_equal(parts.select(kept).cosine_similarity(query), whole.cosine_similarity(query)[kept])


@pytest.mark.parametrize(("precision", "stored_type", "_tolerance"), _TYPES)
def test_zero_vector_has_the_lowest_score(precision: IndexPrecision, stored_type: type, _tolerance: float) -> None:
    vectors = StoredVectors.quantize(np.zeros((2, 4), dtype=np.float32), precision)
    assert vectors.cosine_similarity(_units(1, 4)[0]).tolist() == [-1, -1]
    assert vectors.cosine_similarity(_units(3, 4), np.array([1])).tolist() == [[-1]] * 3
    assert vectors.normalized(slice(0, 2)).tolist() == [[0] * 4] * 2


def test_empty_vectors_have_no_similarities() -> None:
    assert StoredVectors.quantize(np.empty((0, 4), dtype=np.float32), "int8").cosine_similarity(
        _units(1, 4)[0]
    ).shape == (0,)


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e30])
def test_vectors_without_finite_norm_raise(number: float) -> None:
    damaged = StoredVectors(GrowingArray(np.full((1, 4), number, dtype=np.float32)))
    with pytest.raises(InputError, match="holds a vector that is not finite"):
        damaged.cosine_similarity(_units(1, 4)[0])
    with pytest.raises(InputError, match="holds a vector that is not finite"):
        damaged.normalized(slice(0, 1))


def test_every_float16_converts_to_its_value() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = np.isfinite(halves)
    assert np.array_equal(_to_float32(halves)[finite], halves[finite].astype(np.float32))
    assert np.isfinite(_to_float32(halves)).all()


def test_append_keeps_earlier_arrays() -> None:
    rows = [GrowingArray(np.arange(3))]
    for number in range(3, 50):
        rows.append(rows[-1].append(np.array([number])))
    for count, grown in enumerate(rows, 3):
        assert grown.rows.tolist() == list(range(count))
        assert len(grown) == count


def test_append_copies_a_read_only_buffer() -> None:
    fixed = np.arange(3)
    fixed.flags.writeable = False
    assert GrowingArray(fixed).append(np.array([3])).rows.tolist() == [0, 1, 2, 3]
    assert fixed.tolist() == [0, 1, 2]


@contextmanager
def _allocating_at_most(size_bytes: float) -> Iterator[None]:
    """Check that a block never has more memory allocated than that, beyond what was allocated before."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= size_bytes


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_vectors_are_quantized_without_a_copy_of_all(dtype: type) -> None:
    rows: npt.NDArray[Any] = np.ones((20_000, 256), dtype=dtype)
    stored_bytes = rows.size
    encoder: Any = SimpleNamespace(dimension=256)
    with _allocating_at_most(stored_bytes + (10 << 20)):  # a float32 copy would take 20 MB
        embeddings = document_embeddings(encoder, ["x"] * len(rows), rows)
        vectors = StoredVectors.quantize(embeddings, "int8")
    assert vectors.rows.nbytes == stored_bytes


def test_vectors_are_compared_without_a_copy_of_all() -> None:
    vectors = StoredVectors(GrowingArray(np.ones((40_000, 256), dtype=np.float16)))
    query = np.full(256, 1 / 16, dtype=np.float32)
    positions = np.arange(0, 40_000, 2)
    with _allocating_at_most(4 << 20):
        vectors.cosine_similarity(query)
        vectors.cosine_similarity(query, positions)
