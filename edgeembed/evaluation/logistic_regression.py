"""Logistic regression on frozen embeddings, with SentEval's selection of the regularization."""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold

# Folds, seed and grids of SentEval (Conneau and Kiela 2018, senteval/tools/validation.py).
FOLDS = 10
SEED = 1111
CROSS_VALIDATION_C = tuple(2.0**power for power in range(-2, 4))
TEST_SPLIT_C = tuple(2.0**power for power in range(-1, 6))


@dataclass(frozen=True)
class LabeledFeatures:
    """Features of texts or pairs of texts, and their labels.

    Attributes:
        features: (n, features) float32, not standardized.
        labels: (n,) strings.
    """

    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.str_]

    def __getitem__(self, rows: npt.NDArray[np.intp]) -> "LabeledFeatures":
        return LabeledFeatures(self.features[rows], self.labels[rows])


@dataclass(frozen=True)
class ClassifierResult:
    """Result of training a classifier and testing it once.

    Attributes:
        accuracy: Accuracy on the test split, 0 to 1.
        correct: Number of correct predictions on the test split.
        f1: F1 of the label 1, 0 to 1; None unless the labels are 0 and 1.
        dev_accuracy: Mean accuracy with the selected C on the data that it was selected on, 0 to 1.
        c: The selected inverse regularization strength of scikit-learn.
    """

    accuracy: float
    correct: int
    f1: float | None
    dev_accuracy: float
    c: float


def cross_validate(examples: LabeledFeatures) -> list[ClassifierResult]:
    """Run stratified ten-fold cross-validation, selecting C by ten folds within each training set.

    Args:
        examples: All examples, at least twelve of each label.

    Returns:
        One result per fold. C is one of 2^-2 to 2^3.
    """
    splits = _folds().split(examples.features, examples.labels)
    return [_fit_and_test(examples[train], None, examples[test], CROSS_VALIDATION_C) for train, test in splits]


def fit_and_test(train: LabeledFeatures, dev: LabeledFeatures | None, test: LabeledFeatures) -> ClassifierResult:
    """Train a classifier on the training split and test it once on the test split.

    Args:
        train: The training split.
        dev: The development split, on which C, one of 2^-2 to 2^3, is selected. None selects C, one of 2^-1 to 2^5, by
            ten stratified folds of `train`, which needs at least ten examples of each label.
        test: The test split.
    """
    return _fit_and_test(train, dev, test, TEST_SPLIT_C if dev is None else CROSS_VALIDATION_C)


def predict_labels(train: LabeledFeatures, features: npt.NDArray[np.float32]) -> npt.NDArray[np.str_]:
    """Train a classifier and return its predictions.

    Args:
        train: The training split; C, one of 2^-1 to 2^5, is selected by ten stratified folds of it.
        features: (n, features) float32.

    Returns:
        (n,) strings.
    """
    labels: npt.NDArray[np.str_] = _fit(train, None, TEST_SPLIT_C)[0].predict(features)
    return labels


def _fit_and_test(
    train: LabeledFeatures, dev: LabeledFeatures | None, test: LabeledFeatures, grid: tuple[float, ...]
) -> ClassifierResult:
    classifier, search = _fit(train, dev, grid)
    predicted = classifier.predict(test.features)
    f1 = f1_score(test.labels, predicted, pos_label="1", zero_division=0.0) if set(train.labels) == {"0", "1"} else None
    correct = int(accuracy_score(test.labels, predicted, normalize=False))
    return ClassifierResult(
        accuracy_score(test.labels, predicted), correct, f1, search.best_score_, search.best_params_["C"]
    )


def _fit(
    train: LabeledFeatures, dev: LabeledFeatures | None, grid: tuple[float, ...]
) -> tuple[LogisticRegression, GridSearchCV]:
    with warnings.catch_warnings():
        # A classifier just short of convergence predicts nearly the same; a fold may lack a rare label.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        search = _select_c(train, dev, grid)
        return _classifier().set_params(**search.best_params_).fit(train.features, train.labels), search


def _select_c(train: LabeledFeatures, dev: LabeledFeatures | None, grid: tuple[float, ...]) -> GridSearchCV:
    """Return a finished grid search; ties are resolved in favor of the smallest C."""
    features, labels, split = train.features, train.labels, _folds()
    if dev is not None:
        features, labels = np.concatenate([features, dev.features]), np.concatenate([labels, dev.labels])
        split = PredefinedSplit([*[-1] * len(train.labels), *[0] * len(dev.labels)])
    search = GridSearchCV(_classifier(), {"C": grid}, scoring="accuracy", cv=split, refit=False, error_score="raise")
    return search.fit(features, labels)


def _classifier() -> LogisticRegression:
    return LogisticRegression(solver="lbfgs", max_iter=1000)


def _folds() -> StratifiedKFold:
    return StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
