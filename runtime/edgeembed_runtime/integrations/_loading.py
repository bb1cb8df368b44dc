"""Loading of what the integrations need: the other library, and the encoder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from edgeembed_runtime.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from edgeembed_runtime.encoder import Encoder

# Chroma and LanceDB build their embedding function again for each query, so an encoder must outlive them.
_MAX_ENCODERS = 4


@contextmanager
def requires(package: str, extra: str) -> Iterator[None]:
    """Raise MissingExtraError if a package that is imported inside the block is not installed.

    Args:
        package: The package's name on PyPI.
        extra: The extra of edgeembed-runtime that installs it.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(package, extra, "edgeembed-runtime") from error


def bundle_name(bundle: str | os.PathLike[str] | None) -> str | None:
    """Return a bundle argument as a value that can be stored in JSON.

    Args:
        bundle: As for `Encoder`.

    Returns:
        A str or None unchanged; a path as an absolute path, which is never the name of a built-in encoder.
    """
    return os.path.abspath(bundle) if isinstance(bundle, os.PathLike) else bundle  # noqa: PTH100 - keeps links


def shared_encoder(
    bundle: str | os.PathLike[str] | None, threads: int | None = 1, *, fingerprint: str | None = None
) -> "Encoder":
    """Return the encoder of a bundle. The last few encoders stay loaded and are shared by all integrations.

    Args:
        bundle: As for `Encoder`.
        threads: As for `Encoder`.
        fingerprint: The fingerprint of the bundle that encoded the stored vectors, if there are any.

    Returns:
        The encoder.

    Raises:
        InputError: If there is no such bundle, or its fingerprint is another one.
        BundleError: If the bundle cannot be loaded.
    """
    from edgeembed_runtime.builtin_models import open_bundle

    name = bundle_name(bundle)
    opened, _ = open_bundle(name, is_classifier=False)
    if fingerprint is not None and fingerprint != opened.fingerprint:
        raise InputError(
            f"{opened.path} is not the encoder of the stored vectors: its fingerprint is {opened.fingerprint[:12]}, "
            f"expected {str(fingerprint)[:12]}; use the bundle that encoded them, or encode the texts again"
        )
    return _load(name, threads, opened.fingerprint)


@lru_cache(maxsize=_MAX_ENCODERS)
def _load(name: str | None, threads: int | None, fingerprint: str) -> "Encoder":  # noqa: ARG001 - a part of the key
    from edgeembed_runtime.encoder import Encoder

    return Encoder(name, threads=threads)
