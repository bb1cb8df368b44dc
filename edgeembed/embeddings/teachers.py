"""Targets by several teachers: vectors whose cosines are a combination of the teachers' cosines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_exporters.reduction.pca_head import fit_pca
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.store_manifest import EncodedBy

from edgeembed.embeddings.fingerprint import combined_fingerprint
from edgeembed.embeddings.text_vectors import TextVectors, open_file

_ROWS = 16_384
_PAIRS = 65_536  # the standard deviation of their cosines is known to 0.3 %

Map = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]
"""A function from rows of vectors to as many rows."""


@dataclass(frozen=True)
class WeightedVectors:
    """The vectors of one of several teachers.

    Attributes:
        vectors: The vectors of the texts.
        weight: How much the teacher counts, above 0.
    """

    vectors: TextVectors
    weight: float = 1.0


def combine_similarities(teachers: Sequence[WeightedVectors], folder: Path) -> TextVectors:
    """Return vectors whose cosines are the weighted sum of the teachers' centered and standardized cosines.

    The teachers' vectors u_i are centered and normalized. Cosines of one teacher spread more than those of another, so
    each is divided by the standard deviation s_i of its cosines over random pairs of texts. The vectors

        v = (sqrt(a_1) u_1, sqrt(a_2) u_2, ...) with a_i = (w_i / s_i) / sum_j (w_j / s_j)

    have unit length, and v . v' = sum_i a_i u_i . u_i'. They suit every loss that compares similarities.

    Args:
        teachers: Vectors of the same texts, by two teachers or more.
        folder: Folder for the file of the combined vectors.

    Returns:
        float16 (texts, sum of the dimensions).

    Raises:
        InputError: If a weight is not positive, the teachers have other numbers of texts, or the file cannot be
            written.
    """
    _check(teachers)
    maps = [_centered(each.vectors) for each in teachers]
    shares = np.array(
        [each.weight / _cosine_spread(each.vectors, unit) for each, unit in zip(teachers, maps, strict=True)]
    )
    dimensions = [each.vectors.shape[1] for each in teachers]
    return _concatenate("similarities", teachers, maps, dimensions, shares / shares.sum(), folder)


def combine_projections(teachers: Sequence[WeightedVectors], dimensions: Sequence[int], folder: Path) -> TextVectors:
    """Return the teachers' principal components side by side, as an embedding to learn itself.

    Each teacher's vectors are projected to their first principal components and normalized. Side by side, times the
    square root of their share in the weights, they have unit length, and their cosines are the weighted mean of the
    projected cosines.

    Args:
        teachers: Vectors of the same texts, by two teachers or more.
        dimensions: The number of principal components of each teacher.
        folder: Folder for the file of the combined vectors.

    Returns:
        float16 (texts, sum of `dimensions`).

    Raises:
        InputError: As for `combine_similarities`, or if there are fewer texts than components.
    """
    _check(teachers)
    maps = []
    for each, dimension in zip(teachers, dimensions, strict=True):
        texts, width = each.vectors.shape
        if not 0 < dimension <= min(width, texts):
            raise InputError(
                f"{dimension} components of {texts:,} vectors of {width} dimensions by {each.vectors.encoder.name} are "
                f"asked for; expected 1 to {min(width, texts)}: choose fewer, or use a larger corpus"
            )
        projection = fit_pca(each.vectors.vectors, dimension)
        maps.append(_projected(projection.mean, projection.matrix))
    weights = np.array([each.weight for each in teachers])
    return _concatenate("projections", teachers, maps, dimensions, weights / weights.sum(), folder)


def _check(teachers: Sequence[WeightedVectors]) -> None:
    counts = {each.vectors.encoder.name: each.vectors.shape[0] for each in teachers}
    if len(set(counts.values())) != 1:
        listed = ", ".join(f"{count:,} by {name}" for name, count in counts.items())
        raise InputError(f"the teachers have the vectors of {listed}; expected those of the same texts")
    for each in teachers:
        if not each.weight > 0:
            raise InputError(
                f"the weight of the teacher {each.vectors.encoder.name} is {each.weight:g}; expected a number above 0: "
                "leave the teacher out, or give it a weight"
            )


def _centered(vectors: TextVectors) -> Map:
    total = np.zeros(vectors.shape[1], np.float64)
    for rows in _chunks(vectors.shape[0]):
        total += vectors.vectors[rows].astype(np.float64).sum(axis=0)
    mean = (total / vectors.shape[0]).astype(np.float32)
    return _projected(mean, None)


def _projected(mean: npt.NDArray[np.float32], matrix: npt.NDArray[np.float32] | None) -> Map:
    def project(part: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        centered: npt.NDArray[np.float32] = part - mean
        return _unit(centered if matrix is None else centered @ matrix)

    return project


def _cosine_spread(vectors: TextVectors, unit: Map) -> float:
    """Return the standard deviation of the cosines of random pairs of distinct texts."""
    count = vectors.shape[0]
    random = np.random.default_rng(0)
    first = random.integers(count, size=_PAIRS)
    second = (first + random.integers(1, max(count, 2), size=_PAIRS)) % count
    one, other = (unit(vectors.vectors[rows].astype(np.float32)) for rows in (first, second))
    spread = float((one * other).sum(axis=1).std())
    if not spread > 0:
        raise InputError(
            f"all embeddings by {vectors.encoder.name} are equally similar; expected embeddings of texts that differ"
        )
    return spread


def _concatenate(
    kind: str,
    teachers: Sequence[WeightedVectors],
    maps: Sequence[Map],
    dimensions: Sequence[int],
    shares: npt.NDArray[np.float64],
    folder: Path,
) -> TextVectors:
    """Write the mapped vectors side by side, each times the square root of its share."""
    encoders = [each.vectors.encoder for each in teachers]
    texts = teachers[0].vectors.shape[0]
    settings = [f"{share!r} {dimension}" for share, dimension in zip(shares.tolist(), dimensions, strict=True)]
    encoder = EncodedBy(
        name=" + ".join(each.name for each in encoders),
        fingerprint=combined_fingerprint(kind, *(each.key for each in encoders), *settings),
        dimension=sum(dimensions),
        normalized=True,
        precision="+".join(dict.fromkeys(each.precision for each in encoders)),
        space=None,  # that of none of them
        prompt="",
    )
    name = combined_fingerprint(encoder.key, *(each.vectors.file.name for each in teachers))[:16]
    shape = (texts, encoder.dimension)
    file = folder / f"{encoder.key}-{name}.f16"
    with open_file(file, shape) as combined:
        for rows in _chunks(texts):
            parts = [
                np.sqrt(share) * unit(each.vectors.vectors[rows].astype(np.float32))
                for each, unit, share in zip(teachers, maps, shares, strict=True)
            ]
            combined[rows] = np.concatenate(parts, axis=1)
    return TextVectors(file, shape, encoder, min(each.vectors.reused_texts for each in teachers))


def _chunks(count: int) -> Iterator[slice]:
    return (slice(first, first + _ROWS) for first in range(0, count, _ROWS))


def _unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: npt.NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return unit
