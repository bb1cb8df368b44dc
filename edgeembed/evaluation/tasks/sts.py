"""Semantic textual similarity: Spearman correlation of cosine similarities with human scores."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import CheckError, InputError

from edgeembed.corpus.pairs import SentencePairs, read_sts
from edgeembed.evaluation.encoders import SentenceEncoder, encode_texts
from edgeembed.evaluation.intervals import scaled, spearman_interval
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike

METRIC = "Spearman x100"
STS_SETS = {
    "STS12": "sts12",
    "STS13": "sts13",
    "STS14": "sts14",
    "STS15": "sts15",
    "STS16": "sts16",
    "STS-B": "stsb",
    "SICK-R": "sickr",
}
"""The folder of each STS set by its name in papers, in their order (SentEval; Reimers and Gurevych 2019, table 1)."""


@TASKS.register("sts")
class STS(EvaluationTask):
    """Similarity of sentence pairs: Spearman correlation with human scores.

    Args:
        sources: Files in the format of `read_sts`, folders as `read_sts_suite` takes them, or pairs that were read.

    Raises:
        InputError: If one cannot be read.
    """

    metavar = "FILE|DIR"
    help = (
        "TSV of scored sentence pairs: sentence1, sentence2, score. Or a folder of the papers' seven sets: "
        "sts12/test.tsv to sts16/test.tsv, stsb/test.tsv, sickr/test.tsv, as far as it has them. Spearman correlation."
    )
    suite = tuple(STS_SETS)
    title = "STS"
    legend = "Spearman correlation x100 over all pairs of a set"

    def __init__(self, *sources: PathLike | SentencePairs) -> None:
        self.sets: list[SentencePairs] = []
        for source in self.check_sources(sources, SentencePairs):
            if isinstance(source, SentencePairs):
                self.sets.append(source)
            else:
                path = Path(source)
                self.sets += read_sts_suite(path) if path.is_dir() else [read_sts(path)]

    def score(self, encoder: SentenceEncoder, data: SentencePairs) -> list[Score]:
        """Score an encoder, see `score_sts`."""
        return score_sts(encoder, data)


def read_sts_suite(folder: Path) -> list[SentencePairs]:
    """Read the seven STS sets, or those of them that a folder contains.

    Args:
        folder: A folder with `sts12/test.tsv` to `sts16/test.tsv`, `stsb/test.tsv` and `sickr/test.tsv`, or some of
            them, in the format of `read_sts`. Other content is ignored.

    Returns:
        The sets, named as in papers, in their order. Pairs that are also in STS-B are kept.

    Raises:
        InputError: If the folder contains none of the sets, or a file cannot be read.
    """
    files = {name: folder / subfolder / "test.tsv" for name, subfolder in STS_SETS.items()}
    sets = [replace(read_sts(file), name=name, held_out=None) for name, file in files.items() if file.exists()]
    if not sets:
        expected = ", ".join(f"{subfolder}/test.tsv" for subfolder in STS_SETS.values())
        raise InputError(f"{folder} contains none of the seven STS sets; expected one or more of {expected}")
    return sets


def score_sts(encoder: SentenceEncoder, pairs: SentencePairs) -> list[Score]:
    """Compute the Spearman correlation of cosine similarities with human scores, over all pairs at once.

    Args:
        encoder: The encoder.
        pairs: Sentence pairs with human scores.

    Returns:
        One score; and, where the file marks the pairs that are also in STS-B, a second one without them, because models
        whose checkpoint was selected on STS-B have seen them.

    Raises:
        CheckError: If embeddings are not finite, or all pairs have the same similarity.
    """
    similarities = pairwise_cosine(
        encode_texts(encoder.encode, pairs.first), encode_texts(encoder.encode, pairs.second)
    )
    scores = [_spearman(pairs.name, similarities, pairs.scores)]
    outside = pairs.held_out
    if outside is not None and len(set(pairs.scores[outside])) > 1:
        scores.append(_spearman(f"{pairs.name}, outside STS-B", similarities[outside], pairs.scores[outside]))
    return scores


def pairwise_cosine(first: npt.NDArray[np.float32], second: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the cosine similarity of each pair of rows.

    Args:
        first: (n, dim) embeddings.
        second: (n, dim) embeddings.

    Returns:
        (n,) float64; 0 where an embedding is all zeros.
    """
    dots: npt.NDArray[np.float64] = np.einsum("nd,nd->n", first, second, dtype=np.float64)
    norms = np.linalg.norm(first.astype(np.float64), axis=1) * np.linalg.norm(second.astype(np.float64), axis=1)
    cosines: npt.NDArray[np.float64] = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
    return cosines


def _spearman(task: str, similarities: npt.NDArray[np.float64], scores: npt.NDArray[np.float64]) -> Score:
    if np.ptp(similarities) == 0:
        raise CheckError(f"{task}: all pairs have the same cosine similarity, so there is no rank correlation")
    from scipy.stats import spearmanr

    value = 100 * float(spearmanr(similarities, scores).statistic)
    return Score(task, METRIC, value, len(similarities), interval=scaled(spearman_interval(similarities, scores)))
