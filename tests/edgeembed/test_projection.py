import numpy as np
import pytest
import torch
from edgeembed_exporters.reduction.pca_head import fit_pca
from edgeembed_runtime.errors import InputError

from edgeembed.students.initialization import low_rank


def test_pca_finds_the_axes_of_most_variance_in_order() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(5000, 4)) * [0.1, 3.0, 1.0, 0.2] + [5.0, 0.0, 0.0, 0.0]
    projection = fit_pca(vectors, 2)
    np.testing.assert_allclose(np.abs(projection.matrix), [[0, 0], [1, 0], [0, 1], [0, 0]], atol=0.05)
    np.testing.assert_allclose(projection.mean, vectors.mean(axis=0), rtol=1e-5)
    assert projection.explained_variance == pytest.approx(10 / 10.05, abs=0.003)


def test_pca_agrees_with_the_singular_value_decomposition() -> None:
    vectors = np.random.default_rng(1).normal(size=(200, 8)).astype(np.float16)
    projection = fit_pca(vectors, 8)
    centered = vectors.astype(np.float64) - vectors.astype(np.float64).mean(axis=0)
    _, _, components = np.linalg.svd(centered, full_matrices=False)
    np.testing.assert_allclose(np.abs(projection.matrix.T @ components.T), np.eye(8), atol=1e-4)
    assert projection.explained_variance == pytest.approx(1)


def test_pca_above_the_width_raises_with_both_numbers() -> None:
    with pytest.raises(InputError, match=r"dim is 9.*8 dimensions"):
        fit_pca(np.zeros((20, 8)), 9)


def test_pca_of_fewer_sentences_than_dimensions_raises() -> None:
    with pytest.raises(InputError, match="3 sentences"):
        fit_pca(np.zeros((3, 8)), 4)


def test_full_rank_factorization_reproduces_the_rows() -> None:
    rows = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    narrow, wide = low_rank(rows, torch.ones(50), 6)
    torch.testing.assert_close(narrow @ wide.T, rows, atol=1e-5, rtol=1e-5)


def test_low_rank_factorization_keeps_rows_with_larger_weights_better() -> None:
    rows = torch.eye(4)
    narrow, wide = low_rank(rows, torch.tensor([1.0, 100.0, 100.0, 1.0]), 2)
    torch.testing.assert_close((narrow @ wide.T).diagonal(), torch.tensor([0.0, 1.0, 1.0, 0.0]), atol=1e-5, rtol=0)
