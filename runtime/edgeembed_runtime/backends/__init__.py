"""Backends that run a bundle's model: a protocol, and one module per backend."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from edgeembed_runtime.errors import BundleError, VerificationError
from edgeembed_runtime.storage.folder import DiskFolder

if TYPE_CHECKING:
    import numpy.typing as npt

    from edgeembed_runtime.bundle import Bundle


class Backend(Protocol):
    """A loaded model."""

    def run(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Return the model's output for one text.

        Args:
            token_ids: The token ids of the text, including special tokens, without padding.

        Returns:
            (dimension,) float32, a normalized embedding; or (labels,) float32, the logits of a classifier.
        """


def load_backend(bundle: Bundle, *, trusted: bool) -> Backend:
    """Load a bundle's model with the backend that its manifest names.

    Args:
        bundle: The bundle.
        trusted: Whether to skip the checksum and the checks of the graph.

    Returns:
        The backend.

    Raises:
        BundleError: If the backend is unknown or not installed, or the model cannot be loaded.
        VerificationError: If the model does not match its checksum.
    """
    if bundle.backend == "onnx":
        return _load_onnx(bundle, trusted=trusted)
    if bundle.backend == "numpy":
        from edgeembed_runtime.backends.numpy import NumpyBackend

        where = str(bundle.folder / bundle.model_file)
        return NumpyBackend(bundle.read(bundle.model_file, trusted=trusted), bundle.dimension, where)
    raise BundleError(
        f"{bundle.path} needs the backend {bundle.backend!r}, expected 'onnx' or 'numpy'; upgrade edgeembed-runtime"
    )


def _load_onnx(bundle: Bundle, *, trusted: bool) -> Backend:
    """Load an ONNX model, from its path if possible, because onnxruntime would keep a copy of the bytes in memory."""
    try:
        from edgeembed_runtime.backends.onnx import OnnxBackend
    except ImportError as error:
        raise BundleError(
            f"{bundle.path} needs onnxruntime, which cannot be imported ({error}); install it, use Encoder('micro') "
            "(--bundle micro), which runs without it, or export the bundle with --backend numpy"
        ) from error

    file, where = bundle.folder / bundle.model_file, str(bundle.folder / bundle.model_file)
    output = ("logits", len(bundle.labels)) if bundle.is_classifier else ("sentence_embedding", bundle.dimension)
    load = partial(OnnxBackend, output=output, where=where, fold=bundle.precision == "fp16")
    path = file if isinstance(file, DiskFolder) and _is_unicode(where) else None
    if trusted and path is not None:
        return load(where)
    from edgeembed_runtime.backends.onnx_graph import check_graph_file

    state = None if path is None else _file_state(path)
    content = bundle.read(bundle.model_file, trusted=trusted)
    check_graph_file(content, where)
    if path is None:
        return load(content)
    del content
    backend = load(where)
    if _file_state(path) != state:
        raise VerificationError(f"{where} changed while it was loaded; load it again")
    return backend


def _file_state(file: DiskFolder) -> tuple[int, ...]:
    """Return values that change whenever a file is written or replaced; empty if it does not exist."""
    try:
        status = os.stat(file)  # noqa: PTH116
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_unicode(path: str) -> bool:
    """Return whether a path is valid Unicode, as onnxruntime requires."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
