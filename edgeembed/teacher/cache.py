"""On-disk cache of embeddings: memory-mapped, written in checksummed chunks, resumable; and the keys of its folders."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.storage.files import sha256

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

EMBEDDINGS_FILE = "vectors.f16"
CHUNKS_FILE = "chunks.jsonl"

_CHUNK_ROWS = 4096  # rows between two writes: the most that a killed run loses
_MODEL_SUFFIXES = {".json", ".safetensors", ".bin", ".txt", ".model", ".spm"}

Embeddings = npt.NDArray[np.float16]


def model_fingerprint(model: "Path | SentenceTransformer", *, normalize: bool = True) -> str:
    """Return a fingerprint of a model by its content.

    Args:
        model: A model folder, whose files are read, or a loaded model, whose weights and tokenizer are.
        normalize: Whether its embeddings are L2-normalized.

    Returns:
        SHA-256 in hexadecimal over weights, configuration and tokenizer.
    """
    digest = hashlib.sha256()
    if isinstance(model, Path):
        for file in sorted(model.rglob("*")):
            if file.is_file() and file.suffix in _MODEL_SUFFIXES:
                digest.update(f"{file.relative_to(model)}:{sha256(file)}\n".encode())
    else:
        _hash_loaded_model(model, digest.update)
    if not normalize:
        digest.update(b"of any length")
    return digest.hexdigest()


def _hash_loaded_model(model: "SentenceTransformer", update: Callable[[bytes], None]) -> None:
    import torch

    update(f"{model}\n{model.max_seq_length}\n{model.prompts}\n{model.default_prompt_name}\n".encode())
    for name, weight in model.state_dict().items():
        values = weight.detach().cpu().contiguous()
        update(f"{name} {values.dtype} {tuple(values.shape)}\n".encode())
        update(values.flatten().view(torch.uint8).numpy().tobytes())
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    update((repr(model.tokenizer) if backend is None else backend.to_str()).encode())


def text_fingerprint(sentences: Sequence[str]) -> str:
    """Return a fingerprint of sentences and their order, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(sentence.encode("utf-8") + b"\n")
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class _Chunk:
    """A line of the log: rows `first` to `last` (exclusive) in encoding order, and the checksum of their embeddings."""

    first: int
    last: int
    sha256: str


class EmbeddingCache:
    """Embeddings of one list of texts on disk, filled chunk by chunk.

    A chunk counts as complete only if its checksum matches, so that an interrupted run resumes and damaged chunks are
    encoded again.

    Args:
        folder: Folder of the cache; created if it does not exist.
        shape: Number of texts and embedding dimension.
        order: Order in which rows are encoded, int64 (texts,).

    Attributes:
        shape: The same.
        embeddings: float16 of that shape, memory-mapped for writing, in the order of the texts.
    """

    def __init__(self, folder: Path, shape: tuple[int, int], order: npt.NDArray[np.int64]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.shape = folder, shape
        self.embeddings = _open_embeddings(folder / EMBEDDINGS_FILE, shape)
        self._order = order
        self._log = folder / CHUNKS_FILE
        self._complete = self._intact_chunks()

    @property
    def complete_rows(self) -> int:
        """Number of rows whose embeddings are on disk."""
        return sum(chunk.last - chunk.first for chunk in self._complete.values())

    def fill(self, encode: Callable[[npt.NDArray[np.int64]], Embeddings]) -> Iterator[int]:
        """Encode and write the missing chunks.

        Args:
            encode: Function from row numbers, int64 (rows,), to their embeddings, float16 (rows, dimension).

        Yields:
            The number of rows complete so far, after each chunk has reached the disk.
        """
        cut_short = self._log.is_file() and self._log.read_bytes()[-1:] not in {b"", b"\n"}
        with self._log.open("a", encoding="utf-8") as log:
            if cut_short:
                log.write("\n")  # ends the line that a killed run left incomplete
            for first in range(0, len(self._order), _CHUNK_ROWS):
                if first in self._complete:
                    continue
                rows = self._order[first : first + _CHUNK_ROWS]
                encoded = encode(rows)
                self.embeddings[rows] = encoded
                self.embeddings.flush()  # type: ignore[attr-defined]  # a memmap
                chunk = _Chunk(first, first + len(rows), _checksum(encoded))
                log.write(json.dumps(asdict(chunk)) + "\n")
                log.flush()
                os.fsync(log.fileno())
                self._complete[first] = chunk
                yield self.complete_rows

    def _intact_chunks(self) -> dict[int, _Chunk]:
        if not self._log.is_file():
            return {}
        chunks: dict[int, _Chunk] = {}
        for line in self._log.read_text(encoding="utf-8").splitlines():
            try:
                chunk = _Chunk(**json.loads(line))
            except (ValueError, TypeError):  # a line that a killed run left incomplete
                continue
            if chunk.sha256 == _checksum(self.embeddings[self._order[chunk.first : chunk.last]]):
                chunks[chunk.first] = chunk
        return chunks


def _open_embeddings(file: Path, shape: tuple[int, int]) -> Embeddings:
    size_bytes = shape[0] * shape[1] * 2
    if not file.is_file() or file.stat().st_size != size_bytes:
        with atomic_file(file, force=True) as temporary, temporary.open("wb") as handle:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(handle.fileno(), 0, size_bytes)  # a full disk shows now, not as a bus error later
            else:
                handle.truncate(size_bytes)
    return np.memmap(file, dtype=np.float16, mode="r+", shape=shape)


def _checksum(embeddings: Embeddings) -> str:
    return hashlib.sha256(np.ascontiguousarray(embeddings).tobytes()).hexdigest()
