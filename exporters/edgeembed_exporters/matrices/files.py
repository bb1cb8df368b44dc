"""What a bundle holds for NumPy alone."""

from __future__ import annotations

from pathlib import Path

from sentence_transformers import SentenceTransformer

from edgeembed_exporters.matrices.tensors import pack, read_matrices
from edgeembed_exporters.options import LEAST_BYTES, Precision

_FILE = "model.safetensors"


class NumpyFiles:
    """A matrix student read once, to be written at any precision.

    Args:
        model: The student, or a StaticEmbedding.

    Raises:
        InputError: If NumPy alone cannot run it.
    """

    precisions: tuple[Precision, ...] = ("fp32", "fp16", "int8")

    def __init__(self, model: SentenceTransformer) -> None:
        self._student = read_matrices(model)
        self.parameters = self._student.parameters

    def model_file(self, _precision: Precision) -> str:
        """Give the tensor file's path within a bundle."""
        return _FILE

    torch_bytes = 0

    def least_bytes(self, precision: Precision) -> int:
        """Return fewer bytes than the model has at a precision: those of its parameters alone."""
        return int(self.parameters * LEAST_BYTES[precision])

    def write(self, precision: Precision, folder: Path) -> None:
        """Write it into a bundle's folder."""
        (folder / _FILE).write_bytes(pack(self._student, precision))
