"""GPTQ: round the weights of a linear layer such that its output changes least on calibration text.

Source: Frantar et al. 2023, "GPTQ", algorithm 1. One input channel is rounded after the other, and the channels that
follow are corrected for its error.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from edgeembed_exporters.quantization.calibration import Moment

Array = npt.NDArray[np.float32]

_MIN_DAMPING = 1e-9


class Rounding(Protocol):
    """Rounds weights, channel after channel, and keeps the integers."""

    def start_block(self, start: int, block: Array) -> None:
        """Take note of the weights (columns, block size) from a channel on, corrected for all blocks before."""

    def round_channel(self, channel: int, weights: Array) -> Array:
        """Return the values that the weights (columns,) of a channel are rounded to."""


def gptq(weight: Array, moment: Moment, rounding: Rounding, *, block_size: int, damping: float) -> None:
    """Round the weights of a linear layer by GPTQ.

    Args:
        weight: float32 (channels, columns); it is not changed.
        moment: Second moment of the activations, X^T X, float64 (channels, channels).
        rounding: Rounds the corrected weights, and keeps the result.
        block_size: Number of channels that are corrected together.
        damping: What is added to the diagonal of the moment, relative to its mean: the less calibration text there is
            for each channel, the more is needed.
    """
    rest = np.ascontiguousarray(weight.T)
    channels = rest.shape[1]
    inverse = _inverse_hessian_factor(moment, damping)
    for start in range(0, channels, block_size):
        end = min(start + block_size, channels)
        block = rest[:, start:end]
        rounding.start_block(start, block)
        errors = np.empty_like(block)
        for i, channel in enumerate(range(start, end)):
            rounded = rounding.round_channel(channel, block[:, i])
            errors[:, i] = (block[:, i] - rounded) / inverse[channel, channel]
            block[:, i + 1 :] -= np.outer(errors[:, i], inverse[channel, channel + 1 : end])
        rest[:, end:] -= errors @ inverse[start:end, end:]


def _inverse_hessian_factor(moment: Moment, damping: float) -> Array:
    """Return the upper Cholesky factor of the inverse of the damped moment.

    It is the inverse of the factor U of `U U^T`, which is the lower Cholesky factor with both axes reversed: the
    inverse of a triangle takes a fraction of the time that the inverse of the moment would.
    """
    from scipy.linalg.lapack import dtrtri  # imported late: the names of all precisions are read for `--help`

    damped = moment + np.eye(len(moment)) * (damping * np.diag(moment).mean() + _MIN_DAMPING)
    inverse, _ = dtrtri(np.linalg.cholesky(damped[::-1, ::-1]), lower=1)
    return np.ascontiguousarray(inverse[::-1, ::-1]).astype(np.float32)
