"""Encoders to evaluate: the interface of sentence-transformers, loading by name, caching and parameter counts."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from edgeembed_bench.model_info import Parameters, count_bundle
from edgeembed_runtime import Bundle, Encoder
from edgeembed_runtime.errors import CheckError, InputError, TruncationWarning, short_repr


@runtime_checkable
class SentenceEncoder(Protocol):
    """An encoder with the methods of sentence-transformers, such as a `SentenceTransformer` or a runtime `Encoder`."""

    def encode(self, sentences: Any, /, *, batch_size: int = 32) -> Any:
        """Return the (n, dim) embeddings of n texts."""

    def encode_query(self, sentences: Any, /, *, batch_size: int = 32) -> Any:
        """Return the (n, dim) embeddings of n queries."""

    def encode_document(self, sentences: Any, /, *, batch_size: int = 32) -> Any:
        """Return the (n, dim) embeddings of n documents."""


EncoderLike = str | os.PathLike[str] | SentenceEncoder
"""A built-in bundle, a folder, an installed package that carries a model, a hub id, or a loaded encoder."""


class CachingEncoder:
    """An encoder that encodes each distinct text once and keeps its embedding.

    Args:
        encoder: The encoder.
        symmetric: Whether to encode queries and documents like sentences, without their prompts.
    """

    def __init__(self, encoder: SentenceEncoder, *, symmetric: bool = False) -> None:
        self._sentences = _Cache(encoder.encode)
        self._queries = self._sentences if symmetric else _Cache(encoder.encode_query)
        self._documents = self._sentences if symmetric else _Cache(encoder.encode_document)

    def encode(self, sentences: Any, /, *, batch_size: int = 32) -> npt.NDArray[np.float32]:  # noqa: ARG002
        """Return the (n, dim) embeddings of n texts."""
        return self._sentences.embeddings(sentences)

    def encode_query(self, sentences: Any, /, *, batch_size: int = 32) -> npt.NDArray[np.float32]:  # noqa: ARG002
        """Return the (n, dim) embeddings of n queries."""
        return self._queries.embeddings(sentences)

    def encode_document(self, sentences: Any, /, *, batch_size: int = 32) -> npt.NDArray[np.float32]:  # noqa: ARG002
        """Return the (n, dim) embeddings of n documents."""
        return self._documents.embeddings(sentences)


class _Cache:
    def __init__(self, encode: Callable[..., Any]) -> None:
        self._encode = encode
        self._cached: dict[str, npt.NDArray[np.float32]] = {}

    def embeddings(self, texts: list[str]) -> npt.NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self._cached]
        if new:
            self._cached.update(zip(new, encode_texts(self._encode, new), strict=True))
        return np.stack([self._cached[text] for text in texts])


def encode_texts(encode: Callable[..., Any], texts: list[str]) -> npt.NDArray[np.float32]:
    """Return the embeddings of texts, after checking that they are finite.

    Args:
        encode: One of the methods of a `SentenceEncoder`.
        texts: The texts.

    Returns:
        (n, dim) float32.

    Raises:
        CheckError: If an embedding is not finite.
    """
    with warnings.catch_warnings():
        # Truncation is part of what is scored, and other encoders truncate without a warning.
        warnings.simplefilter("ignore", TruncationWarning)
        embeddings = np.asarray(encode(texts, batch_size=32), dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(embeddings).all(axis=1))
    if bad.size:
        raise CheckError(
            f"{bad.size} of {len(texts)} embeddings are not finite, the first is of the text {texts[bad[0]][:80]!r}"
        )
    return embeddings


def find_encoder(encoder: EncoderLike) -> Callable[[], SentenceEncoder]:
    """Return a function that loads a model or a bundle, after checking that it exists.

    Args:
        encoder: A model or a bundle, as `edgeembed.models.find_model` takes it, or a loaded encoder.

    Returns:
        A function without arguments, which calls `load_encoder`, or returns the loaded encoder.

    Raises:
        InputError: If there is no such model, or it is the bundle of a classifier.
    """
    from edgeembed.models import find_model, is_bundle

    if not isinstance(encoder, str | os.PathLike):
        return lambda: encoder
    folder = find_model(encoder)
    if is_bundle(folder) and Bundle.open(folder).is_classifier:
        raise InputError(f"{os.fspath(encoder)} is a classifier; expected an encoder")
    return lambda: load_encoder(encoder)


def load_encoder(name: str | os.PathLike[str]) -> SentenceEncoder:
    """Load a model or a bundle.

    Args:
        name: A model or a bundle, as `edgeembed.models.find_model` takes it.

    Returns:
        A runtime `Encoder` for a bundle, a `SentenceTransformer` in float32 for a model.

    Raises:
        InputError: If there is no such model, or it cannot be loaded.
        VerificationError: If a file of a bundle does not match its checksum.
    """
    from edgeembed.models import find_model, is_bundle, load_model

    folder = find_model(name)
    encoder: SentenceEncoder = (
        Encoder.load(folder, verify=True, threads=None) if is_bundle(folder) else load_model(name)
    )
    return encoder


def encoder_fingerprint(encoder: EncoderLike) -> str | None:
    """Return the fingerprint of a model or a bundle by its files; None for a loaded encoder, which is not cached."""
    from edgeembed.embeddings.fingerprint import model_fingerprint
    from edgeembed.models import find_model, is_bundle

    if not isinstance(encoder, str | os.PathLike):
        return None
    folder = find_model(encoder)
    return Bundle.open(folder).fingerprint if is_bundle(folder) else model_fingerprint(folder)


def encoder_name(encoder: EncoderLike) -> str:
    """Return the name of an encoder for reports: as given, or the name of the bundle or model that was loaded.

    Args:
        encoder: The encoder.

    Raises:
        InputError: If it is neither a name or a path, nor has the methods of a `SentenceEncoder`.
    """
    if isinstance(encoder, str | os.PathLike):
        return os.fspath(encoder)
    if not isinstance(encoder, SentenceEncoder):
        raise InputError(
            f"a model is {short_repr(encoder)}; expected a name, a folder, a SentenceTransformer or an Encoder"
        )
    if isinstance(encoder, Encoder):
        return encoder.bundle.name
    folder = Path(getattr(getattr(encoder, "transformers_model", None), "name_or_path", "") or type(encoder).__name__)
    return folder.parent.name if folder.name == "model" else folder.name  # installed packages carry `model` folders


def count_parameters(encoder: SentenceEncoder) -> Parameters | None:
    """Count the parameters of an encoder, and those in its embedding tables.

    Embedding tables hold token, position and token type embeddings, as SimTDE counts them: 91 % of BERT-Tiny. The
    projection of a factorized token embedding is a linear layer, so a student and its bundle have the same counts.

    Args:
        encoder: A `SentenceTransformer` or a runtime `Encoder`.

    Returns:
        The counts; None for other encoders.
    """
    if isinstance(encoder, Encoder):
        return count_bundle(encoder.bundle)
    from torch import nn

    if not isinstance(encoder, nn.Module):
        return None
    tables = {each.weight: None for each in encoder.modules() if isinstance(each, nn.Embedding | nn.EmbeddingBag)}
    return Parameters(sum(weight.numel() for weight in encoder.parameters()), sum(table.numel() for table in tables))
