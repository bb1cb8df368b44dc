"""fp32: the model's own weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from edgeembed_exporters.onnx.graph import copy_model
from edgeembed_exporters.precision import PRECISIONS, Precision


@PRECISIONS.register("fp32")
class Fp32(Precision):
    """Weights in float32, as they are.

    The bundle differs from torch only by rounding: the worst cosine measured 1 - 1e-12, rank correlation and overlap
    of all-MiniLM-L6-v2 1.0, label agreement 1.0 and the largest difference of a probability 1e-6.
    """

    help = "is the model's own"
    file = "onnx/model.onnx"
    bits = 32
    calibrates = False
    min_cosine = 0.9999
    min_rank = 0.99
    min_overlap = 0.95
    min_label_agreement = 0.99
    max_probability_difference = 0.01

    @staticmethod
    def quantize(model: onnx.ModelProto, token_ids: Sequence[list[int]]) -> onnx.ModelProto:  # noqa: ARG004
        """Return a copy."""
        return copy_model(model)

    @staticmethod
    def pack(matrix: npt.NDArray[np.float32]) -> tuple[npt.NDArray[Any], None]:
        """Return the matrix itself."""
        return matrix, None
