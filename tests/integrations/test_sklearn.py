"""scikit-learn: the transformer obeys the rules of estimators and works in pipelines."""

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, InputError

pytest.importorskip("sklearn", reason="make test-integrations installs scikit-learn")
from edgeembed_runtime.integrations.sklearn import EdgeEmbedVectorizer
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

# The checks that fit an estimator do so on numbers, so `check_estimator` skips them for an estimator of texts.
_CHECKS = [
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_estimator_tags_renamed,
    estimator_checks.check_get_feature_names_out_error,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_mixin_order,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_set_params,
    estimator_checks.check_valid_tag_types,
]


@pytest.mark.parametrize("check", _CHECKS, ids=lambda check: check.__name__)
def test_checks_of_estimators_pass(check: Callable[[str, Any], None]) -> None:
    check("EdgeEmbedVectorizer", EdgeEmbedVectorizer("nano"))


@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_check_estimator_passes() -> None:
    estimator_checks.check_estimator(EdgeEmbedVectorizer("nano"))


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda texts: np.array(texts, dtype=object)])
def test_texts_become_their_embeddings(
    kind: Callable[[Any], Any], prompted: Path, encoder: Encoder, documents: list[str]
) -> None:
    vectorizer = EdgeEmbedVectorizer(prompted, prompt_name="document")
    embeddings = vectorizer.fit_transform(kind(documents))
    np.testing.assert_array_equal(embeddings, encoder.encode_document(documents))
    assert embeddings.dtype == np.float32


def test_a_pipeline_learns_and_is_pickled(documents: list[str]) -> None:
    pipeline = make_pipeline(EdgeEmbedVectorizer("nano", threads=2), KNeighborsClassifier(1))
    pipeline.fit(documents, ["finance", "home", "finance"])
    for fitted in (pipeline, pickle.loads(pickle.dumps(pipeline))):
        assert fitted.predict(["Baking with sourdough", "The stock market"]).tolist() == ["home", "finance"]


def test_a_grid_search_clones_it(documents: list[str]) -> None:
    pipeline = make_pipeline(EdgeEmbedVectorizer("nano"), LogisticRegression())
    search = GridSearchCV(pipeline, {"edgeembedvectorizer__truncate_dim": [8, None]}, cv=2)
    search.fit([*documents, documents[1]], ["finance", "home", "finance", "home"])
    assert set(search.cv_results_["param_edgeembedvectorizer__truncate_dim"]) == {8, None}


def test_features_have_names() -> None:
    vectorizer = EdgeEmbedVectorizer("nano", truncate_dim=2).fit(["bread"])
    assert vectorizer.get_feature_names_out().tolist() == ["edgeembedvectorizer0", "edgeembedvectorizer1"]
    assert vectorizer.transform([]).shape == (0, 2)
    assert EdgeEmbedVectorizer("nano").fit(["bread"]).get_feature_names_out().shape == (256,)


def test_an_unfitted_transformer_is_an_error(prompted: Path) -> None:
    vectorizer = EdgeEmbedVectorizer(prompted).fit(["bread"])
    with pytest.raises(NotFittedError):
        clone(vectorizer).transform(["bread"])
    assert not hasattr(pickle.loads(pickle.dumps(clone(vectorizer))), "encoder_")


def test_a_pickle_rejects_another_encoder_at_the_same_path(replaced: Path, other_encoder: Path) -> None:
    pickled = pickle.dumps(EdgeEmbedVectorizer(replaced).fit(["bread"]))
    shutil.rmtree(replaced)
    shutil.move(other_encoder, replaced)
    with pytest.raises(InputError, match="not the encoder of the stored vectors"):
        pickle.loads(pickled)


class _Table:
    """What iterates over the names of its columns, as a DataFrame does."""

    ndim = 2

    def __iter__(self) -> Any:
        return iter(["title"])


@pytest.mark.parametrize("texts", [_Table(), [["bread"]], np.array([["bread"]]), "bread", [1.5], [None]])
def test_anything_but_a_list_of_texts_is_an_error(texts: Any) -> None:
    vectorizer = EdgeEmbedVectorizer("nano").fit(["bread"])
    with pytest.raises(InputError, match="expected"):
        vectorizer.transform(texts)
