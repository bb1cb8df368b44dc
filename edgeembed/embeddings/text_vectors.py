"""Vectors of a list of texts as one memory-mapped array, for training that reads some rows at each step."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.file_lock import locked
from edgeembed_runtime.store_manifest import EncodedBy

from edgeembed.embeddings.fingerprint import text_fingerprint
from edgeembed.embeddings.store import EmbeddingStore


@dataclass(frozen=True)
class TextVectors:
    """The vectors of a list of texts, on disk; pickling it does not copy them.

    Attributes:
        file: The file.
        shape: Number of texts and dimension.
        encoder: The encoder that they are from.
        reused_texts: Number of texts that were in the store before.
    """

    file: Path
    shape: tuple[int, int]
    encoder: EncodedBy
    reused_texts: int

    @property
    def vectors(self) -> npt.NDArray[np.float16]:
        """The vectors, float16 (texts, dimension), memory-mapped, in the order of the texts."""
        return np.memmap(self.file, dtype=np.float16, mode="r", shape=self.shape)


def map_vectors(store: EmbeddingStore, texts: Sequence[str], folder: Path, *, reused: int) -> TextVectors:
    """Copy the vectors of texts from a store into a file, in the order of the texts.

    The file is filled at each call, so that it need not be trusted.

    Args:
        store: The store.
        texts: The texts.
        folder: Folder for the file; several runs may share it.
        reused: Number of texts that were in the store before this run.

    Raises:
        InputError: If there are no texts, the store lacks one, or the file cannot be written.
    """
    if not texts:
        raise InputError("no sentences to encode; expected at least one: use a corpus that contains text")
    rows = store.find_all(texts)
    shape = (len(texts), store.encoder.dimension)
    file = folder / f"{store.encoder.key}-{text_fingerprint(texts)}.f16"
    with open_file(file, shape) as vectors:
        store.read(rows, vectors)
    return TextVectors(file, shape, store.encoder, reused)


@contextmanager
def open_file(file: Path, shape: tuple[int, int]) -> Iterator[npt.NDArray[np.float16]]:
    """Open a file of vectors to fill, memory-mapped; it is created if it does not exist.

    Args:
        file: The file. Other runs wait, and may then fill it with the same numbers.
        shape: Number of texts and dimension.

    Raises:
        InputError: If the file cannot be written.
    """
    with _file_errors(file), locked(file):
        _allocate(file, shape[0] * shape[1] * 2)
        vectors = np.memmap(file, dtype=np.float16, mode="r+", shape=shape)
        yield vectors
        vectors.flush()


def _allocate(file: Path, size_bytes: int) -> None:
    if file.is_file() and file.stat().st_size == size_bytes:
        return
    with file.open("wb") as opened:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(opened.fileno(), 0, size_bytes)  # a full disk shows now, not as a bus error later
        else:
            opened.truncate(size_bytes)


@contextmanager
def _file_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {file}: {error.strerror or error}; expected a writable folder with free space: check it or "
            "choose another --cache"
        ) from error
