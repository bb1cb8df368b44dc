"""A head of fewer dimensions for a model that is not trained again."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_runtime.errors import InputError
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import nn

from edgeembed_exporters.source import take_apart
from edgeembed_exporters.tailoring.projection import Projection, check_dim, fit_pca

_HELD_OUT_SHARE = 8
_NEIGHBOURS = 10
# Covariances of a few hundred dimensions and ranks of half a million pairs change no more with more.
_MOST_FITTED = 5_000
_MOST_HELD_OUT = 1_000

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class HeadReport:
    """What a head costs.

    Attributes:
        dim_before: The length of the model's vectors.
        dim_after: The length of the head's.
        whitened: Whether all its dimensions vary alike.
        explained_variance: Share of the variance that it keeps, 0 to 1, before any whitening.
        spearman: Rank correlation of all cosines between held-out texts, before and after.
        neighbours_kept: Share of the ten texts nearest to a held-out one that still are, 0 to 1.
        sentences: How many sentences it was fitted on.
        held_out: How many texts were held out.
    """

    dim_before: int
    dim_after: int
    whitened: bool
    explained_variance: float
    spearman: float
    neighbours_kept: float
    sentences: int
    held_out: int


def add_head(
    model: SentenceTransformer,
    sentences: Sequence[str],
    *,
    dim: int,
    whiten: bool = False,
    held_out: Sequence[str] = (),
) -> tuple[SentenceTransformer, HeadReport]:
    """Give a copy of a model with a head that keeps what varies most over a corpus.

    The principal components become a Dense module with the mean in its bias, after all there is; where the model
    ends in Normalize, the copy does so again.

    Args:
        model: A loaded model; it stays as it is.
        sentences: The corpus; of more than 5,000, that many are read, evenly spaced.
        dim: The length of the new vectors.
        whiten: Whether all dimensions get the same variance. That spreads vectors that crowd together, and
            makes noise of what varies little.
        held_out: Texts that tell what is kept, 1,000 at most of them; none: one in eight of `sentences`.

    Returns:
        The copy, and what the head costs.

    Raises:
        InputError: If the model has an unsupported part, `dim` is none or above its dimensions, or there are
            too few sentences.
    """
    width = take_apart(model).dimension
    fitted, told = _split(sentences, held_out)
    check_dim(dim, len(fitted), width)
    projection = fit_pca(_encode(model, fitted), dim, whiten=whiten)
    vectors = _encode(model, told)
    before, after = _cosines(vectors), _cosines((vectors - projection.mean) @ projection.matrix)
    report = HeadReport(
        dim_before=width,
        dim_after=dim,
        whitened=whiten,
        explained_variance=projection.explained_variance,
        spearman=_rank_correlation(before, after),
        neighbours_kept=_neighbours_kept(before, after),
        sentences=len(fitted),
        held_out=len(told),
    )
    return _with_head(model, projection), report


def dense_of(projection: Projection) -> Dense:
    """Give a projection as a module of sentence-transformers."""
    width, dim = projection.matrix.shape
    return Dense(
        width,
        dim,
        activation_function=nn.Identity(),
        init_weight=torch.from_numpy(projection.matrix.T.copy()),
        init_bias=torch.from_numpy(-projection.mean @ projection.matrix),
    )


def _split(sentences: Sequence[str], held_out: Sequence[str]) -> tuple[list[str], list[str]]:
    """Give the sentences to fit on and the texts, none of them twice, to tell by what is kept."""
    fitted, told = list(sentences), list(dict.fromkeys(held_out))
    if not told:
        told = list(dict.fromkeys(fitted[::_HELD_OUT_SHARE]))
        fitted = [text for index, text in enumerate(fitted) if index % _HELD_OUT_SHARE]
    if len(told) <= _NEIGHBOURS:
        raise InputError(
            f"{len(told)} held-out texts cannot tell what a head keeps; expected more than {_NEIGHBOURS}, or "
            f"{_HELD_OUT_SHARE} times as many sentences to hold them out from"
        )
    return _spaced(fitted, _MOST_FITTED), _spaced(told, _MOST_HELD_OUT)


def _spaced(texts: list[str], most: int) -> list[str]:
    return [texts[len(texts) * index // most] for index in range(most)] if len(texts) > most else texts


def _encode(model: SentenceTransformer, texts: list[str]) -> Vectors:
    vectors: Vectors = model.encode(texts, convert_to_numpy=True, show_progress_bar=False)
    return vectors


def _cosines(vectors: npt.NDArray[np.floating]) -> Vectors:
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines: Vectors = (unit @ unit.T).astype(np.float32)
    return cosines


def _rank_correlation(before: Vectors, after: Vectors) -> float:
    pairs = np.triu_indices(len(before), k=1)
    return float(spearmanr(before[pairs], after[pairs]).statistic)


def _neighbours_kept(before: Vectors, after: Vectors) -> float:
    pairs = zip(_nearest(before), _nearest(after), strict=True)
    return float(np.mean([len(set(row) & set(other)) / _NEIGHBOURS for row, other in pairs]))


def _nearest(cosines: Vectors) -> list[list[int]]:
    """Give the nearest others of each text, (texts, neighbours)."""
    others = cosines - 3 * np.eye(len(cosines), dtype=cosines.dtype)
    nearest: list[list[int]] = np.argsort(-others, axis=1, kind="stable")[:, :_NEIGHBOURS].tolist()
    return nearest


def _with_head(model: SentenceTransformer, projection: Projection) -> SentenceTransformer:
    headed: SentenceTransformer = copy.deepcopy(model)
    normalises = type(headed[-1]).__name__ == "Normalize"
    headed.append(dense_of(projection).to(model.device))
    if normalises:
        headed.append(Normalize())
    return headed.eval()
