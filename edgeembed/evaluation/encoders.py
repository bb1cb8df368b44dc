"""What an evaluation asks of an encoder: a SentenceTransformer and a runtime Encoder both have it."""

import warnings
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import CheckError, TruncationWarning


class SentenceEncoder(Protocol):
    """Anything that turns texts into vectors, queries and documents apart where it was trained so."""

    def encode(self, sentences: Any, /, *, batch_size: int = 32) -> Any:
        """Give (n, dim) vectors of n texts."""

    def encode_query(self, sentences: Any, /, *, batch_size: int = 32) -> Any:
        """Give (n, dim) vectors of n queries."""

    def encode_document(self, sentences: Any, /, *, batch_size: int = 32) -> Any:
        """Give (n, dim) vectors of n documents."""


def open_encoder(name: str) -> SentenceEncoder:
    """Load a model or a bundle for encoding.

    Args:
        name: A model or a bundle by any name that `edgeembed.models.find_model` takes.

    Returns:
        A runtime `Encoder` for a bundle, a `SentenceTransformer` for a model.

    Raises:
        InputError: If there is no such model, or it cannot be loaded.
        VerificationError: If a bundle's files are not the ones that were exported.
    """
    from edgeembed.models import find_model, is_bundle, load_model

    folder = find_model(name)
    encoder: SentenceEncoder
    if is_bundle(folder):
        from edgeembed_runtime import Encoder

        encoder = Encoder.load(folder, verify=True, threads=None)
    else:
        encoder = load_model(name)
    return encoder


def vectors(encode: Callable[..., Any], texts: list[str]) -> npt.NDArray[np.float32]:
    """Encode texts for scoring.

    Args:
        encode: One of a `SentenceEncoder`'s methods.
        texts: What to encode.

    Returns:
        (n, dim) float32.

    Raises:
        CheckError: If a vector is not finite; a score over such vectors would mean nothing.
    """
    with warnings.catch_warnings():
        # How much of a text an encoder reads is part of what is scored; others cut long texts silently.
        warnings.simplefilter("ignore", TruncationWarning)
        encoded = np.asarray(encode(texts, batch_size=32), dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(encoded).all(axis=1))
    if bad.size:
        raise CheckError(f"{bad.size} of {len(texts)} vectors are not finite, the first for: {texts[bad[0]][:80]!r}")
    return encoded
