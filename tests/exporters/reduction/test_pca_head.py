from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_exporters import BundleSettings, export
from edgeembed_exporters.reduction.pca_head import add_pca_head, fit_pca
from edgeembed_runtime import Encoder, InputError
from sentence_transformers import SentenceTransformer
from sklearn.decomposition import PCA

from ..conftest import HIDDEN, SENTENCES, make_model  # noqa: TID252  # the tests are no package


@pytest.fixture(scope="module")
def wide() -> SentenceTransformer:
    """A model that ends in Normalize and has no Dense module."""
    return make_model(dense=False)


def test_the_head_computes_the_principal_components(wide: SentenceTransformer, sentences: list[str]) -> None:
    headed, report = add_pca_head(wide, sentences, dim=6, held_out=SENTENCES)
    reference = PCA(6).fit(wide.encode(sentences))
    expected = reference.transform(wide.encode(SENTENCES))
    expected *= np.sign((expected * headed.encode(SENTENCES)).sum(axis=0))
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(headed.encode(SENTENCES), expected, atol=1e-4)
    assert report.explained_variance == pytest.approx(reference.explained_variance_ratio_.sum(), rel=1e-5)


def test_whitened_vectors_have_the_identity_as_covariance() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(3000, 8)) @ random.normal(size=(8, 8)) + 3
    projection = fit_pca(vectors, 5, whiten=True)
    whitened = (vectors - projection.mean) @ projection.matrix
    np.testing.assert_allclose(np.cov(whitened, rowvar=False, bias=True), np.eye(5), atol=1e-4)
    assert projection.explained_variance == fit_pca(vectors, 5).explained_variance


def test_whitening_does_not_amplify_rounding_errors() -> None:
    vectors = np.random.default_rng(0).normal(size=(100, 3)) * [1, 1e-9, 0]
    projection = fit_pca(vectors, 3, whiten=True)
    assert np.abs((vectors - projection.mean) @ projection.matrix).max() < 5


def test_a_whitened_head_whitens_before_it_normalizes(wide: SentenceTransformer, sentences: list[str]) -> None:
    headed, report = add_pca_head(wide, sentences, dim=4, whiten=True, held_out=SENTENCES)
    assert report.whitened
    del headed[-1]
    np.testing.assert_allclose(np.cov(headed.encode(sentences), rowvar=False, bias=True), np.eye(4), atol=1e-3)


def test_the_head_subtracts_the_mean_of_the_corpus(wide: SentenceTransformer, sentences: list[str]) -> None:
    headed, _ = add_pca_head(wide, sentences, dim=HIDDEN, held_out=SENTENCES)
    del headed[-1]
    assert np.abs(headed.encode(sentences).mean(axis=0)).max() < 1e-5


def test_the_report_states_what_is_kept(wide: SentenceTransformer, sentences: list[str]) -> None:
    _, all_kept = add_pca_head(wide, sentences, dim=HIDDEN)
    assert (all_kept.dim_before, all_kept.dim_after) == (HIDDEN, HIDDEN)
    assert (all_kept.sentences, all_kept.held_out) == (262, 38)  # one in eight of 300
    assert all_kept.explained_variance == pytest.approx(1)
    few = [add_pca_head(wide, sentences, dim=dim)[1] for dim in (2, 12)]
    for measure in ("explained_variance", "spearman", "neighbors_kept"):
        fewest, more = (getattr(report, measure) for report in few)
        assert 0 < fewest < more < 1


def test_the_model_is_not_changed(wide: SentenceTransformer, sentences: list[str]) -> None:
    before = wide.encode(SENTENCES)
    add_pca_head(wide, sentences, dim=4)
    assert [type(module).__name__ for module in wide] == ["Word", "Pooling", "Normalize"]
    np.testing.assert_array_equal(wide.encode(SENTENCES), before)


@pytest.mark.parametrize(
    ("without_normalize", "dense", "names"),
    [
        (False, False, ["Word", "Pooling", "Normalize", "Dense", "Normalize"]),
        (True, False, ["Word", "Pooling", "Dense"]),
        (False, True, ["Word", "Pooling", "Dense", "Normalize", "Dense", "Normalize"]),
    ],
)
def test_the_head_comes_last(without_normalize: bool, dense: bool, names: list[str], sentences: list[str]) -> None:
    model = make_model(dense=dense)
    if without_normalize:
        del model[-1]
    headed, _ = add_pca_head(model, sentences, dim=4)
    assert [type(module).__name__ for module in headed] == names
    assert headed.encode(SENTENCES).shape == (len(SENTENCES), 4)


@pytest.mark.slow
def test_a_head_of_a_head_exports_at_int8(sentences: list[str], tmp_path: Path) -> None:
    headed, _ = add_pca_head(make_model(), sentences, dim=5)
    report = export(headed, tmp_path / "b", BundleSettings(precision="int8", min_cosine=0.9), sentences=sentences)
    assert report.dimension == 5
    given = Encoder.load(tmp_path / "b").encode(SENTENCES, on_truncate="ignore", on_unknown="ignore")
    assert (given * headed.encode(SENTENCES)).sum(axis=1).mean() > 0.98


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"dim": HIDDEN + 1}, f"dim is 33, but the vectors have {HIDDEN} dimensions"),
        ({"dim": 0}, "dim is 0"),
        ({"dim": 20, "held_out": SENTENCES, "few": 19}, "there are 19 sentences to fit 20 dimensions"),
        ({"dim": 2, "few": 70}, "there are 9 held-out texts"),
        ({"dim": 2, "held_out": ["a"] * 50}, "there are 1 held-out texts"),
    ],
)
def test_impossible_arguments_raise_a_one_line_error(
    wide: SentenceTransformer, sentences: list[str], options: dict[str, Any], named: str
) -> None:
    given = {name: value for name, value in options.items() if name != "few"}
    with pytest.raises(InputError, match=named) as raised:
        add_pca_head(wide, sentences[: options.get("few")], **given)
    assert "\n" not in str(raised.value)


def test_equal_sentences_raise_an_error(wide: SentenceTransformer) -> None:
    with pytest.raises(InputError, match="are the same"):
        add_pca_head(wide, ["once"] * 50, dim=2, held_out=SENTENCES)
