"""The gate: a bundle that is less faithful, or larger, than was asked for is not written."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime import Encoder
from edgeembed_runtime.errors import BundleError, CheckError
from edgeembed_runtime.manifest import Parity, WorstSentence
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

Matrix = npt.NDArray[np.float64]

_WORST_SENTENCES = 10
_SHOWN_CHARACTERS = 80
_NEAREST = 10
# Ranks of more would take memory by the square of their number, and tell nothing new.
_MOST_RANKED = 1000
_DIGITS = 6  # what is further behind is rounding, which would put sentences of the same tokens in any order


class GateError(CheckError):
    """Raised when a bundle does not meet what was demanded of it; nothing was written.

    Args:
        message: What was measured and demanded, in one line.
        parity: What was measured.

    Attributes:
        parity: How close the bundle is to the model, with the worst sentences; None where the vectors cannot be
            compared, or the size was refused.
    """

    def __init__(self, message: str, parity: "Parity | OriginalParity | None" = None) -> None:
        super().__init__(message)
        self.parity = parity


def compare(model: SentenceTransformer, folder: Path, sentences: Sequence[str]) -> Parity:
    """Run text through a model and its bundle, as the bundle will be run, and measure how close they are.

    Args:
        model: The model that the bundle was made from.
        folder: The bundle's folder.
        sentences: What to encode, held out from whatever the bundle was fitted to; one that comes twice counts once.

    Raises:
        GateError: If the bundle gives no vectors, or other than the model's dimensions.
    """
    texts = list(dict.fromkeys(sentences))
    expected = model.encode(texts, convert_to_numpy=True, show_progress_bar=False)
    try:
        given = Encoder.load(folder, threads=None).encode(texts, on_truncate="ignore", show_progress_bar=False)
    except BundleError as error:
        raise GateError(f"the bundle cannot encode; nothing was written: take another precision ({error})") from error
    if given.shape != expected.shape:
        raise GateError(
            f"the bundle's vectors have {given.shape[1]} dimensions, expected {expected.shape[1]} as the model's; "
            "nothing was written: take another precision"
        )
    return measure_parity(texts, expected, given)


@dataclass(frozen=True)
class OriginalParity:
    """How close a bundle is to the model before its vocabulary was trimmed or its dimension reduced.

    Attributes:
        sentences: How many sentences were compared.
        min_cosine: The lowest cosine among them; this and the next three are None if the dimension was reduced,
            since vectors of different dimensions have no cosine.
        mean_cosine: The mean of their cosines.
        p01_cosine: The cosine that one sentence in a hundred falls below.
        worst_sentences: Those with the lowest cosines, the lowest first.
        spearman: Spearman's, between the original's cosines of all pairs of sentences and the bundle's; this
            and the next are None with too few sentences.
        top_10_overlap: The share of a sentence's ten nearest that are the same for both, the mean over the sentences.
    """

    sentences: int
    min_cosine: float | None
    mean_cosine: float | None
    p01_cosine: float | None
    worst_sentences: tuple[WorstSentence, ...]
    spearman: float | None
    top_10_overlap: float | None


def compare_with_original(original: SentenceTransformer, folder: Path, sentences: Sequence[str]) -> OriginalParity:
    """Measure how close a bundle is to the model before trimming and reduction.

    Args:
        original: The model as it was.
        folder: The bundle's folder.
        sentences: What to encode; one that comes twice counts once.

    Returns:
        Cosines if both have the same dimension, and in any case how far the similarities of all pairs agree.
    """
    texts = list(dict.fromkeys(sentences))
    expected = original.encode(texts, convert_to_numpy=True, show_progress_bar=False)
    given = Encoder.load(folder, threads=None).encode(texts, on_truncate="ignore", show_progress_bar=False)
    if given.shape == expected.shape:
        return OriginalParity(**vars(measure_parity(texts, expected, given)))
    correlation, overlap = _rank_agreement(_unit(expected), _unit(given))
    return OriginalParity(len(texts), None, None, None, (), correlation, overlap)


def check_original_parity(parity: OriginalParity, min_cosine: float | None, min_rank: float | None) -> None:
    """Refuse a bundle that is too far from the model before trimming and reduction.

    Args:
        parity: What was measured.
        min_cosine: The least cosine that any sentence may have; None sets no limit.
        min_rank: The least rank correlation of all pairwise cosines; None sets no limit.

    Raises:
        GateError: If a limit is missed, with the measured figure, the limit and the worst sentence.
    """
    if min_cosine is not None and not (parity.min_cosine is not None and parity.min_cosine >= min_cosine):
        worst = parity.worst_sentences[0].text[:_SHOWN_CHARACTERS]
        raise GateError(
            f"the worst cosine to the original model over {parity.sentences} sentences is {parity.min_cosine:.5f}, "
            f"demanded is {min_cosine:g}; nothing was written: keep more tokens or lower --min-original-cosine "
            f"({worst!r})",
            parity,
        )
    if min_rank is not None and not (parity.spearman is not None and parity.spearman >= min_rank):
        found = "unknown" if parity.spearman is None else f"{parity.spearman:.5f}"
        raise GateError(
            f"the rank correlation with the original model over {parity.sentences} sentences is {found}, demanded is "
            f"{min_rank:g}; nothing was written: keep more tokens or dimensions, or lower --min-original-rank",
            parity,
        )


def measure_parity(
    sentences: Sequence[str], expected: npt.NDArray[np.float32], given: npt.NDArray[np.float32]
) -> Parity:
    """Give how close a bundle's vectors are to those of the model it was made from.

    Args:
        sentences: What was encoded.
        expected: The model's vectors, (sentences, dimension).
        given: The bundle's vectors, (sentences, dimension).
    """
    model, bundle = _unit(expected), _unit(given)
    cosines = _cosines(model, bundle)
    broken_first = np.argsort(np.nan_to_num(cosines, nan=-np.inf), kind="stable")
    correlation, overlap = _rank_agreement(model, bundle)
    return Parity(
        sentences=len(sentences),
        min_cosine=float(cosines.min()),
        mean_cosine=float(cosines.mean()),
        worst_sentences=tuple(WorstSentence(sentences[i], float(cosines[i])) for i in broken_first[:_WORST_SENTENCES]),
        p01_cosine=float(np.quantile(cosines, 0.01)),
        spearman=correlation,
        top_10_overlap=overlap,
    )


def check_parity(parity: Parity, min_cosine: float) -> None:
    """Refuse a bundle whose worst sentence is further from the model than allowed.

    Args:
        parity: What was measured.
        min_cosine: The least cosine that any sentence may have.

    Raises:
        GateError: If one has less; it names what was measured, what was demanded and the sentence.
    """
    if parity.min_cosine >= min_cosine:  # which NaN is not
        return
    worst = parity.worst_sentences[0].text[:_SHOWN_CHARACTERS]
    raise GateError(
        f"the worst cosine to the model over {parity.sentences} sentences is {parity.min_cosine:.5f}, "
        f"demanded is {min_cosine:g}; nothing was written: take a higher precision or lower --min-cosine ({worst!r})",
        parity,
    )


def check_size(size_bytes: int, max_size_mb: float | None, *, at_least: bool = False) -> None:
    """Refuse a bundle that is larger than allowed; a megabyte is a million bytes.

    Args:
        size_bytes: The size of the bundle.
        max_size_mb: The most megabytes that it may have; None sets no limit.
        at_least: Whether the size is a lower bound, known before the bundle is written.

    Raises:
        GateError: If it is; it names what was measured and what was demanded.
    """
    if max_size_mb is not None and size_bytes > max_size_mb * 1e6:
        found = f"{'at least ' if at_least else ''}{size_bytes / 1e6:.2f} MB"
        raise GateError(
            f"the bundle has {found}, demanded are at most {max_size_mb:g}; nothing was written: export at a lower "
            "precision or take a smaller model or vocabulary"
        )


def check_latency(latency_ms: float | None, max_latency_ms: float | None) -> None:
    """Refuse a bundle that is slower than allowed.

    Raises:
        GateError: If it is; it names what was measured and demanded.
    """
    if latency_ms is not None and max_latency_ms is not None and latency_ms > max_latency_ms:
        raise GateError(
            f"one text takes {latency_ms:.3f} ms, demanded are at most {max_latency_ms:g}; nothing was "
            "written: export at a lower precision or take a smaller model"
        )


def worst_lines(parity: Parity | OriginalParity) -> list[str]:
    """Return the worst sentences for a terminal, a line each: the cosine and how the sentence begins, escaped."""
    return [f"{each.cosine:.5f}  {each.text[:_SHOWN_CHARACTERS]!r}" for each in parity.worst_sentences]


def _unit(vectors: npt.NDArray[np.float32]) -> Matrix:
    """Give rows of unit length; of zeros where they are, as for a text of no known token, and of NaN if not finite."""
    rows = np.where(np.isfinite(vectors).all(axis=1, keepdims=True), vectors.astype(np.float64), np.nan)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Matrix = rows / np.where(lengths == 0, 1, lengths)
    return unit


def _cosines(model: Matrix, bundle: Matrix) -> Matrix:
    """Give each row's cosine to the one in its place: 1 where both are zeros, NaN where one is not finite."""
    both_zero = ~model.any(axis=1) & ~bundle.any(axis=1)
    cosines: Matrix = np.where(both_zero, 1.0, (model * bundle).sum(axis=1))
    return cosines


def _rank_agreement(model: Matrix, bundle: Matrix) -> tuple[float | None, float | None]:
    """Give Spearman's correlation over all pairs, and the mean share of the nearest that are the same.

    Each is None where it would say nothing: with fewer than three pairs or all alike, and where the ten nearest are
    all the others.
    """
    step = math.ceil(len(model) / _MOST_RANKED)
    alike = [rows @ rows.T for rows in (model[::step], bundle[::step])]
    if not all(np.isfinite(cosines).all() for cosines in alike):
        return None, None
    return _correlation(*alike), _overlap(*alike)


def _correlation(model: Matrix, bundle: Matrix) -> float | None:
    pairs = np.triu_indices(len(model), k=1)
    if len(pairs[0]) < 3 or not (np.ptp(model[pairs]) and np.ptp(bundle[pairs])):
        return None
    return float(spearmanr(model[pairs], bundle[pairs]).statistic)


def _overlap(model: Matrix, bundle: Matrix) -> float | None:
    if len(model) <= _NEAREST + 1:
        return None
    nearest = [_nearest(cosines) for cosines in (model, bundle)]
    return float(np.mean([len(set(one) & set(other)) / _NEAREST for one, other in zip(*nearest, strict=True)]))


def _nearest(cosines: Matrix) -> list[list[int]]:
    """Give the columns of each row's ten largest, its own left out."""
    others = cosines.round(_DIGITS)
    np.fill_diagonal(others, -np.inf)
    columns: list[list[int]] = np.argsort(-others, axis=1, kind="stable")[:, :_NEAREST].tolist()
    return columns
