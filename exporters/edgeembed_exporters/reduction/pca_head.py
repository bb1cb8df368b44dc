"""Reduce the dimension of a model's embeddings by principal components, optionally whitened, without training."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from torch import nn

from edgeembed_exporters.held_out import EVERY, one_in_eight
from edgeembed_exporters.rank_agreement import NEIGHBORS, rank_agreement
from edgeembed_exporters.settings import spelled
from edgeembed_exporters.soundness import sound_model

# As a share of the largest variance. Smaller variances are rounding errors, which whitening would amplify.
_MIN_VARIANCE = 1e-6
# The covariance of a few hundred dimensions, and the ranks of half a million pairs, do not change with more texts.
_MAX_FIT_TEXTS = 5_000
_MAX_HELD_OUT_TEXTS = 1_000


@dataclass(frozen=True)
class Projection:
    """An affine projection, `(vector - mean) @ matrix`.

    Attributes:
        mean: float32 (width,).
        matrix: float32 (width, dim), the component of the largest variance first. Its columns are orthogonal, and of
            length 1 unless they whiten.
        explained_variance: Share of the variance kept, 0 to 1, before any whitening.
    """

    mean: npt.NDArray[np.float32]
    matrix: npt.NDArray[np.float32]
    explained_variance: float


def fit_pca(vectors: npt.NDArray[np.floating], dim: int, *, whiten: bool = False, sample: int = 100_000) -> Projection:
    """Fit the principal components of a model's embeddings (HPD, section 3: h = W(e - mean)).

    Args:
        vectors: Embeddings (n, width) of any float type, memory-mapped or not.
        dim: Number of dimensions to keep.
        whiten: Whether every dimension gets the variance 1 (Su et al. 2021, "Whitening sentence representations",
            section 3.2), unless it had almost none.
        sample: Number of evenly spaced rows to fit on. The covariance of a few hundred dimensions needs no more.

    Raises:
        InputError: If `dim` is below 1 or above the width, there are fewer vectors than dimensions, or all are equal.
    """
    count, width = vectors.shape
    check_dim(dim, count, width)
    rows = np.linspace(0, count - 1, min(count, sample)).astype(np.int64)
    chosen = np.asarray(vectors[rows], dtype=np.float64)
    mean = chosen.mean(axis=0)
    variances, components = np.linalg.eigh(np.cov(chosen - mean, rowvar=False, bias=True))
    if variances[-1] <= 0:
        raise InputError(f"all {count} vectors are the same; expected those of a corpus of different sentences")
    order = np.argsort(variances)[::-1][:dim]
    matrix = components[:, order]
    matrix *= np.sign(matrix[np.abs(matrix).argmax(axis=0), np.arange(dim)])  # the same signs on every machine
    if whiten:
        matrix /= np.sqrt(np.maximum(variances[order], _MIN_VARIANCE * variances[-1]))
    explained = float(variances[order].sum() / variances.sum())
    return Projection(mean.astype(np.float32), matrix.astype(np.float32), explained)


def check_dim(dim: int, count: int, width: int) -> None:
    """Check that vectors can be projected to a number of dimensions.

    Args:
        dim: Number of dimensions to keep.
        count: Number of vectors to fit on.
        width: Dimension of the vectors.

    Raises:
        InputError: If `dim` is below 1, above the width, or above the number of vectors.
    """
    if not 1 <= dim <= width:
        raise InputError(f"{spelled('dim')} is {dim}, but the vectors have {width} dimensions; choose 1 to {width}")
    if count < dim:
        raise InputError(f"there are {count} sentences to fit {dim} dimensions; expected a larger corpus")


@dataclass(frozen=True)
class PcaHeadReport:
    """What a PCA head keeps.

    Attributes:
        dim_before: The model's dimension.
        dim_after: The head's dimension.
        whitened: Whether all dimensions have the same variance.
        explained_variance: Share of the variance that is kept, 0 to 1, before any whitening.
        spearman: Spearman's correlation between the cosines of all pairs of held-out texts before and after; None if
            all pairs are equal.
        neighbors_kept: Mean share of a held-out text's ten nearest neighbors that stay, 0 to 1.
        sentences: Number of sentences that the head was fitted on.
        held_out: Number of held-out texts.
    """

    dim_before: int
    dim_after: int
    whitened: bool
    explained_variance: float
    spearman: float | None
    neighbors_kept: float | None
    sentences: int
    held_out: int

    def __str__(self) -> str:
        """Return what is kept in one line."""
        kept = [f"{self.explained_variance:.1%} of the variance"]
        if self.spearman is not None:
            kept.append(f"rank correlation of all pairs {self.spearman:.3f}")
        if self.neighbors_kept is not None:
            kept.append(f"{self.neighbors_kept:.1%} of the ten nearest stay")
        return f"head: {self.dim_after} of {self.dim_before} dimensions; {', '.join(kept)}"


def add_pca_head(
    model: SentenceTransformer,
    sentences: Sequence[str],
    *,
    dim: int,
    whiten: bool = False,
    held_out: Sequence[str] = (),
) -> tuple[SentenceTransformer, PcaHeadReport]:
    """Return a copy of a model that projects its embeddings onto their first principal components.

    The projection is a Dense module at the end of the model, with the mean in its bias. If the model ends in Normalize,
    so does the copy.

    Args:
        model: A loaded model; it is not changed.
        sentences: The corpus to fit on; of more than 5,000 sentences, that many are used, evenly spaced.
        dim: The new dimension.
        whiten: Whether all dimensions get the same variance. It spreads embeddings that are close together, and
            amplifies dimensions that are mostly noise.
        held_out: Texts to measure on, at most 1,000 of them; if empty, one in eight of `sentences`.

    Returns:
        The copy, and what the head keeps.

    Raises:
        InputError: If `dim` is below 1 or above the model's dimension, or there are too few sentences.
    """
    fit_texts, held_out_texts = _split(sentences, held_out)
    model = sound_model(model)
    before = _encode(model, held_out_texts)
    width = before.shape[1]
    check_dim(dim, len(fit_texts), width)
    projection = fit_pca(_encode(model, fit_texts), dim, whiten=whiten)
    spearman, overlap = rank_agreement(before, (before - projection.mean) @ projection.matrix)
    report = PcaHeadReport(
        dim_before=width,
        dim_after=dim,
        whitened=whiten,
        explained_variance=projection.explained_variance,
        spearman=spearman,
        neighbors_kept=overlap,
        sentences=len(fit_texts),
        held_out=len(held_out_texts),
    )
    return _with_head(model, projection), report


def as_dense(projection: Projection) -> Dense:
    """Return a projection as a Dense module of sentence-transformers."""
    width, dim = projection.matrix.shape
    return Dense(
        width,
        dim,
        activation_function=nn.Identity(),
        init_weight=torch.from_numpy(projection.matrix.T.copy()),
        init_bias=torch.from_numpy(-projection.mean @ projection.matrix),
    )


def _split(sentences: Sequence[str], held_out: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the sentences to fit on and the distinct held-out texts."""
    fit_texts, held_out_texts = list(sentences), list(dict.fromkeys(held_out))
    if not held_out_texts:
        chosen, fit_texts = one_in_eight(fit_texts)
        held_out_texts = list(dict.fromkeys(chosen))
    if len(held_out_texts) <= NEIGHBORS:
        raise InputError(
            f"there are {len(held_out_texts)} held-out texts to measure a PCA head on; expected more than {NEIGHBORS}, "
            f"or {EVERY} times as many sentences to hold them out from"
        )
    return _evenly_spaced(fit_texts, _MAX_FIT_TEXTS), _evenly_spaced(held_out_texts, _MAX_HELD_OUT_TEXTS)


def _evenly_spaced(texts: list[str], limit: int) -> list[str]:
    return [texts[len(texts) * index // limit] for index in range(limit)] if len(texts) > limit else texts


def _encode(model: SentenceTransformer, texts: list[str]) -> npt.NDArray[np.float32]:
    embeddings: npt.NDArray[np.float32] = model.encode(texts, convert_to_numpy=True, show_progress_bar=False)
    return embeddings


def _with_head(model: SentenceTransformer, projection: Projection) -> SentenceTransformer:
    made: SentenceTransformer = copy.deepcopy(model)
    is_normalized = isinstance(made[-1], Normalize)
    made.append(as_dense(projection).to(model.device))
    if is_normalized:
        made.append(Normalize())
    return made.eval()
