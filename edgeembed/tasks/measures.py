"""GLUE's measures."""

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from edgeembed.tasks.examples import Task

Measure = Literal["accuracy", "f1", "matthews", "accuracy-f1", "pearson-spearman"]


def measures(task: Task, found: npt.NDArray[np.int64]) -> dict[str, float]:
    """Give all measures x100 that a task has, of the classes found on its development part.

    Args:
        task: The task.
        found: A class for each example, int64 (examples,).

    Returns:
        `pearson`, `spearman` and their mean `pearson-spearman` for scores; else `accuracy`, and for two classes `f1` of
        the second, `matthews`, and the mean of accuracy and F1, `accuracy-f1`.
    """
    if task.dev.scores is not None:
        return _of_scores(task.dev.scores, task.values(found))
    right = task.dev.classes
    given = {"accuracy": 100 * float(accuracy_score(right, found))}
    if len(task.names) == 2:
        f1 = 100 * float(f1_score(right, found, zero_division=0.0))
        given |= {"f1": f1, "matthews": 100 * float(matthews_corrcoef(right, found))}
        given["accuracy-f1"] = (given["accuracy"] + f1) / 2
    return given


def _of_scores(right: npt.NDArray[np.float64], found: npt.NDArray[np.float64]) -> dict[str, float]:
    # One value for all examples orders nothing; the correlations are not defined then.
    tells = len(set(found)) > 1
    pearson = 100 * float(pearsonr(right, found).statistic) if tells else 0.0
    spearman = 100 * float(spearmanr(right, found).statistic) if tells else 0.0
    return {"pearson": pearson, "spearman": spearman, "pearson-spearman": (pearson + spearman) / 2}
