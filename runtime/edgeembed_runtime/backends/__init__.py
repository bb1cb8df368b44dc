"""What turns token ids into a vector: one small protocol, one engine a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import BundleError

if TYPE_CHECKING:
    from edgeembed_runtime.bundle import Bundle


class Backend(Protocol):
    """An engine that holds a bundle's model."""

    def embed(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Give the vector of one text.

        Args:
            token_ids: The text's tokens, special ones included, without padding.

        Returns:
            (dimension,) float32, of unit length.
        """


def load_backend(bundle: "Bundle", *, trusted: bool) -> Backend:
    """Give the engine that a bundle asks for, with its model loaded.

    Args:
        bundle: The bundle.
        trusted: Whether to load the model without comparing its checksum.

    Raises:
        BundleError: If no such engine exists here, or the model cannot be loaded.
        VerificationError: If the model is not the one that was exported.
    """
    where = str(bundle.path / bundle.model_file)
    # Imported here so that a bundle of another backend never needs onnxruntime.
    if bundle.backend == "onnx":
        try:
            from edgeembed_runtime.backends.onnx import OnnxBackend
        except ImportError as error:
            raise BundleError(
                f"{bundle.path} needs onnxruntime, which is not here ({error}); expected it installed, "
                "or a bundle for the backend 'numpy', which runs without it"
            ) from error
        is_path = trusted and isinstance(bundle.path, Path)
        model = where if is_path else bundle.read(bundle.model_file)
        return OnnxBackend(model, bundle.dimension, where, fold=bundle.precision == "fp16")
    if bundle.backend == "numpy":
        from edgeembed_runtime.backends.numpy import NumpyBackend

        return NumpyBackend(bundle.read(bundle.model_file, trusted=trusted), bundle.dimension, where)
    raise BundleError(
        f"{bundle.path} needs the backend {bundle.backend!r}, expected 'onnx' or 'numpy'; upgrade edgeembed-runtime"
    )
