"""What turns token ids into a vector: one small protocol, one engine a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import BundleError, VerificationError

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
    """Load a bundle's model into the engine that it asks for.

    Args:
        bundle: The bundle.
        trusted: Whether to load the model without comparing its checksum and checking its graph.

    Returns:
        The engine.

    Raises:
        BundleError: If there is no such engine here, or the model cannot be loaded.
        VerificationError: If the model is not the one that was exported.
    """
    # Imported here so that a bundle of another backend never needs onnxruntime.
    if bundle.backend == "onnx":
        try:
            import edgeembed_runtime.backends.onnx  # noqa: F401
        except ImportError as error:
            raise BundleError(
                f"{bundle.path} needs onnxruntime, which is not here ({error}); expected it installed, "
                "or a bundle for the backend 'numpy', which runs without it"
            ) from error
        return _load_onnx(bundle, trusted=trusted)
    if bundle.backend == "numpy":
        from edgeembed_runtime.backends.numpy import NumpyBackend

        where = str(bundle.path / bundle.model_file)
        return NumpyBackend(bundle.read(bundle.model_file, trusted=trusted), bundle.dimension, where)
    raise BundleError(
        f"{bundle.path} needs the backend {bundle.backend!r}, expected 'onnx' or 'numpy'; upgrade edgeembed-runtime"
    )


def _load_onnx(bundle: "Bundle", *, trusted: bool) -> Backend:
    """Load an ONNX model from its path where it has one: from bytes, onnxruntime would keep these as well."""
    from edgeembed_runtime.backends.onnx import OnnxBackend
    from edgeembed_runtime.backends.onnx_graph import check_graph_file

    file, fold = bundle.path / bundle.model_file, bundle.precision == "fp16"
    where = str(file)
    path = file if isinstance(file, Path) and _is_unicode(where) else None
    if trusted and path is not None:
        return OnnxBackend(where, bundle.dimension, where, fold=fold)
    state = None if path is None else _state(path)
    content = bundle.read(bundle.model_file, trusted=trusted)
    check_graph_file(content, where)
    if path is None:
        return OnnxBackend(content, bundle.dimension, where, fold=fold)
    del content
    backend = OnnxBackend(where, bundle.dimension, where, fold=fold)
    if _state(path) != state:
        raise VerificationError(f"{where} was changed while it was loaded; load it again")
    return backend


def _state(file: Path) -> tuple[int, ...]:
    """Return what changes whenever a file is written or replaced; nothing if it is gone."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_unicode(path: str) -> bool:
    """Return whether a path is valid Unicode, which onnxruntime expects of one."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
