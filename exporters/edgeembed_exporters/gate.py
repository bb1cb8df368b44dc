"""The gate: a bundle that is less faithful, or larger, than was asked for is not written."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import CheckError
from edgeembed_runtime.manifest import Parity, WorstSentence

_WORST_SENTENCES = 5
_SHOWN_CHARACTERS = 80


class GateError(CheckError):
    """Raised when a bundle does not meet what was demanded of it; nothing was written."""


def measure_parity(
    sentences: Sequence[str], expected: npt.NDArray[np.float32], given: npt.NDArray[np.float32]
) -> Parity:
    """Give how close a bundle's vectors are to those of the model it was made from.

    Args:
        sentences: What was encoded.
        expected: The model's vectors, (sentences, dimension).
        given: The bundle's vectors, (sentences, dimension).
    """
    cosines = _cosines(expected.astype(np.float64), given.astype(np.float64))
    order = np.argsort(cosines, kind="stable")[:_WORST_SENTENCES]
    return Parity(
        sentences=len(sentences),
        worst_cosine=float(cosines.min()),
        mean_cosine=float(cosines.mean()),
        worst_sentences=tuple(WorstSentence(sentences[i], float(cosines[i])) for i in order),
    )


def check_parity(parity: Parity, min_cosine: float) -> None:
    """Refuse a bundle whose worst sentence is further from the model than allowed.

    Raises:
        GateError: If it is; it names what was measured, what was demanded and the sentence.
    """
    if not parity.worst_cosine >= min_cosine:  # so that NaN is refused too
        worst = parity.worst_sentences[0].text[:_SHOWN_CHARACTERS]
        raise GateError(
            f"the worst cosine to the model over {parity.sentences} sentences is {parity.worst_cosine:.5f}, "
            f"demanded is {min_cosine:g}; nothing was written: take fp32 or lower --min-cosine ({worst!r})"
        )


def check_size(size_bytes: int, max_size_mb: float | None) -> None:
    """Refuse a bundle that is larger than allowed; a megabyte is a million bytes.

    Raises:
        GateError: If it is; it names what was measured and what was demanded.
    """
    if max_size_mb is not None and size_bytes > max_size_mb * 1e6:
        raise GateError(
            f"the bundle has {size_bytes / 1e6:.2f} MB, demanded are at most {max_size_mb:g}; nothing was "
            "written: export at int8 or take a smaller model or vocabulary"
        )


def _cosines(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosines: npt.NDArray[np.float64] = (a * b).sum(axis=1) / np.where(lengths == 0, 1, lengths)
    return cosines
