"""The precisions of a bundle's weights: one class in one file of `quantization` each, registered by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgeembed_exporters.registry import Registry


class Precision(ABC):
    """A precision: how weights are stored, what that may cost, and the code that quantizes them.

    The limits have the names of the settings that replace them (`BundleSettings`).

    Attributes:
        help: What it is for, in half a sentence.
        file: The path of the ONNX model in a bundle, as transformers.js expects it.
        bits: The minimum bits per weight; scales, and weights that are not quantized, come on top.
        backends: The backends that run it.
        calibrates: Whether it reads calibration text.
        keeps_levels: Whether tables that were trained with a few levels per value are stored with these.
        min_cosine: The default minimum cosine of any sentence to the model.
        min_rank: The default minimum rank correlation between the model's and the bundle's cosines of all pairs of
            sentences.
        min_overlap: The default minimum share of a sentence's ten nearest neighbors that stay, on average.
        min_label_agreement: The default minimum share of texts for which a classifier and its bundle predict the same
            label.
        max_probability_difference: The default maximum difference of a probability between a classifier and its bundle.
    """

    help: ClassVar[str]
    file: ClassVar[str]
    bits: ClassVar[int]
    backends: ClassVar[tuple[str, ...]] = ("onnx", "numpy")
    calibrates: ClassVar[bool] = True
    keeps_levels: ClassVar[bool] = False
    min_cosine: ClassVar[float]
    min_rank: ClassVar[float]
    min_overlap: ClassVar[float]
    min_label_agreement: ClassVar[float]
    max_probability_difference: ClassVar[float]

    @staticmethod
    @abstractmethod
    def quantize(model: Any, token_ids: Sequence[list[int]]) -> Any:
        """Convert an ONNX model.

        Args:
            model: A float32 model (onnx.ModelProto), fused (`edgeembed_exporters.fusion`); it is not changed.
            token_ids: Calibration text: the unpadded token ids of each text.

        Returns:
            A new model with the same inputs and outputs.
        """

    @staticmethod
    def pack(matrix: npt.NDArray[np.float32]) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32] | None]:
        """Convert a matrix for the numpy backend (docs/tensor-file.md), if `backends` has it.

        Args:
            matrix: float32 (rows, columns).

        Returns:
            The values to store, and the scale of each row (rows,), or None if they need none.
        """
        raise NotImplementedError


PRECISIONS = Registry[Precision]("precision", "edgeembed_exporters.quantization")


def precision_names(backend: str | None = None) -> tuple[str, ...]:
    """Return the names of all precisions, or of those that a backend runs, the most precise first."""
    suited = [name for name, each in PRECISIONS.items() if backend is None or backend in each.backends]
    return tuple(sorted(suited, key=lambda name: -PRECISIONS[name].bits))
