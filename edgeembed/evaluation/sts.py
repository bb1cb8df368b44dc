"""Semantic textual similarity: do cosines order sentence pairs as people do?"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import CheckError, InputError
from scipy.stats import spearmanr

from edgeembed.evaluation.encoders import SentenceEncoder, vectors
from edgeembed.evaluation.scores import Score
from edgeembed.tsv import read_tsv

_COLUMNS = ("sentence1", "sentence2", "score")
METRIC = "Spearman x100"


@dataclass(frozen=True)
class SentencePairs:
    """Sentence pairs that people scored.

    Attributes:
        name: The file's name, with its folder.
        first: First sentences.
        second: Second sentences.
        scores: What people gave, one a pair.
        held_out: For each pair whether it is outside STS-B; None where the file does not say.
    """

    name: str
    first: list[str]
    second: list[str]
    scores: npt.NDArray[np.float64]
    held_out: npt.NDArray[np.bool_] | None


def read_sts(file: Path) -> SentencePairs:
    """Read a file of scored sentence pairs.

    Args:
        file: UTF-8, tab-separated, no quoting, with a header that names `sentence1`, `sentence2` and
            `score`; a column `in_stsb` may tell which part of STS-B a pair is also in, or `none`.

    Returns:
        The pairs.

    Raises:
        InputError: If the file cannot be read, lacks a column, has a score that is no number, or does not
            hold two pairs of different scores.
    """
    rows = _rows(file)
    scores = np.array([_score(row["score"], file, number) for number, row in enumerate(rows, start=1)])
    if len(set(scores)) < 2:
        raise InputError(f"{file}: {len(rows)} pairs, {len(set(scores))} different scores; expected two or more")
    held_out = np.array([row["in_stsb"] == "none" for row in rows]) if "in_stsb" in rows[0] else None
    name = f"{file.resolve().parent.name}/{file.stem}"
    return SentencePairs(name, [row["sentence1"] for row in rows], [row["sentence2"] for row in rows], scores, held_out)


def score_sts(encoder: SentenceEncoder, pairs: SentencePairs) -> list[Score]:
    """Score an encoder by Spearman's correlation over all pairs, as the papers do.

    Args:
        encoder: What to score.
        pairs: Sentence pairs with people's scores.

    Returns:
        One score; a second one over the pairs outside STS-B alone where the file tells them apart, because
        a model whose checkpoint was chosen on STS-B has seen the others.

    Raises:
        CheckError: If the encoder gives vectors that are not finite, or the same cosine for every pair.
    """
    cosines = paired_cosines(vectors(encoder.encode, pairs.first), vectors(encoder.encode, pairs.second))
    scores = [_spearman(pairs.name, cosines, pairs.scores)]
    outside = pairs.held_out
    if outside is not None and len(set(pairs.scores[outside])) > 1:
        scores.append(_spearman(f"{pairs.name}, outside STS-B", cosines[outside], pairs.scores[outside]))
    return scores


def paired_cosines(first: npt.NDArray[np.float32], second: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Give the cosine of each row of one matrix with the same row of another.

    Args:
        first: (n, dim).
        second: (n, dim).

    Returns:
        (n,) float64; 0 where a row is all zeros.
    """
    dots: npt.NDArray[np.float64] = np.einsum("nd,nd->n", first, second, dtype=np.float64)
    norms = np.linalg.norm(first.astype(np.float64), axis=1) * np.linalg.norm(second.astype(np.float64), axis=1)
    cosines: npt.NDArray[np.float64] = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
    return cosines


def _spearman(task: str, cosines: npt.NDArray[np.float64], scores: npt.NDArray[np.float64]) -> Score:
    if np.ptp(cosines) == 0:
        raise CheckError(f"{task}: the encoder gives every pair the same cosine; it tells no sentences apart")
    return Score(task, METRIC, 100 * float(spearmanr(cosines, scores).statistic), len(cosines))


def _rows(file: Path) -> list[dict[str, str]]:
    rows = read_tsv(file, _COLUMNS, ("in_stsb",), f"expected a TSV with a header with {', '.join(_COLUMNS)}")
    if not rows:
        raise InputError(f"{file} holds no pairs below its header; expected two or more")
    return rows


def _score(text: str, file: Path, number: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise InputError(f"{file}, pair {number}: score {text!r} is no number; expected one in every row")
    return score
