"""Logistic regression on frozen vectors as SentEval has it: regularisation is chosen before anything is tested."""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold

FOLDS = 10
SEED = 1111  # that of SentEval
FOLDED_C = tuple(2.0**power for power in range(-2, 4))
TESTED_C = tuple(2.0**power for power in range(-1, 6))


@dataclass(frozen=True)
class Labelled:
    """Features of texts, or of pairs of texts, and what they are.

    Attributes:
        features: (n, features) float32, as they are: nothing is standardised.
        labels: (n,) strings.
    """

    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.str_]

    def __getitem__(self, rows: npt.NDArray[np.intp]) -> "Labelled":
        return Labelled(self.features[rows], self.labels[rows])


@dataclass(frozen=True)
class Outcome:
    """What a classifier got right.

    Attributes:
        accuracy: Share of what was tested, 0 to 1.
        f1: F1 of the label 1, 0 to 1; None where the labels are not 0 and 1.
        dev_accuracy: Mean share of what C was chosen on, with that C, 0 to 1.
        c: The inverse strength of regularisation that was chosen, as scikit-learn has it.
    """

    accuracy: float
    f1: float | None
    dev_accuracy: float
    c: float


def cross_validated(whole: Labelled) -> list[Outcome]:
    """Test each of ten stratified folds with what the other nine taught, C chosen by ten folds within these.

    Args:
        whole: All examples, twelve or more of each label.

    Returns:
        One outcome a fold. C is one of 2^-2 to 2^3.
    """
    splits = _folds().split(whole.features, whole.labels)
    return [_outcome(whole[learned], None, whole[tested], FOLDED_C) for learned, tested in splits]


def tested(train: Labelled, dev: Labelled | None, test: Labelled) -> Outcome:
    """Test a classifier on a set's own test part.

    Args:
        train: What the classifier learns from.
        dev: What C, one of 2^-2 to 2^3, is chosen on and nothing is learned from. None: C, one of 2^-1 to 2^5, is
            chosen by ten stratified folds of `train`, which then has ten or more of each label.
        test: What it is tested on once.
    """
    return _outcome(train, dev, test, TESTED_C if dev is None else FOLDED_C)


def predictions(train: Labelled, features: npt.NDArray[np.float32]) -> npt.NDArray[np.str_]:
    """Give the labels that a classifier finds.

    Args:
        train: What it learns from; C, one of 2^-1 to 2^5, is chosen by ten stratified folds of it.
        features: (n, features) float32.
    """
    found: npt.NDArray[np.str_] = _taught(train, None, TESTED_C)[0].predict(features)
    return found


def _outcome(train: Labelled, dev: Labelled | None, test: Labelled, grid: tuple[float, ...]) -> Outcome:
    classifier, search = _taught(train, dev, grid)
    found = classifier.predict(test.features)
    f1 = f1_score(test.labels, found, pos_label="1", zero_division=0.0) if set(train.labels) == {"0", "1"} else None
    return Outcome(accuracy_score(test.labels, found), f1, search.best_score_, search.best_params_["C"])


def _taught(train: Labelled, dev: Labelled | None, grid: tuple[float, ...]) -> tuple[LogisticRegression, GridSearchCV]:
    with warnings.catch_warnings():
        # A classifier that is a little short of its optimum classifies all but the same; and folds may lack a rare bin.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        search = _searched(train, dev, grid)
        return _classifier().set_params(**search.best_params_).fit(train.features, train.labels), search


def _searched(train: Labelled, dev: Labelled | None, grid: tuple[float, ...]) -> GridSearchCV:
    """Give a search that was done; of several C that are equally good the smallest is best."""
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
