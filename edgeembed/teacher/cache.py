"""On-disk cache of embeddings: memory-mapped, written in checksummed chunks, resumable; and the keys of its folders."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.storage.files import sha256

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch.nn import Module

EMBEDDINGS_FILE = "vectors.f16"
CHUNKS_FILE = "chunks.jsonl"
TEXTS_FILE = "texts.npy"

_CHUNK_ROWS = 4096  # rows between two writes: the most that a killed run loses
_MODEL_SUFFIXES = {".json", ".safetensors", ".bin", ".txt", ".model", ".spm"}

# Two of a billion texts have the same digest with a probability of 3 %; a wrong embedding among so many does no harm.
_TEXT = np.dtype([("digest", np.uint64), ("characters", np.int32)])

Embeddings = npt.NDArray[np.float16]
Texts = npt.NDArray[np.void]
"""Digests and lengths of texts, with the fields `digest`, uint64, and `characters`, int32."""


def model_fingerprint(model: "Path | SentenceTransformer", *, normalize: bool = True, prompt: str = "") -> str:
    """Return a fingerprint of a model by its content.

    Args:
        model: A model folder, whose files are read, or a loaded model, whose weights and tokenizer are.
        normalize: Whether its embeddings are L2-normalized.
        prompt: The text that it reads before each text.

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
    if prompt:
        digest.update(f"prompt {prompt}".encode())
    return digest.hexdigest()


def weights_fingerprint(module: "Module") -> str:
    """Return the SHA-256 of a module's weights in hexadecimal."""
    import torch

    digest = hashlib.sha256()
    for name, weight in module.state_dict().items():
        values = weight.detach().cpu().contiguous()
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}\n".encode())
        digest.update(values.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _hash_loaded_model(model: "SentenceTransformer", update: Callable[[bytes], None]) -> None:
    update(f"{model}\n{model.max_seq_length}\n".encode())
    update(weights_fingerprint(model).encode())
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        update(repr(model.tokenizer).encode())
    else:  # without the padding and truncation of the last batch
        update(json.dumps({**json.loads(backend.to_str()), "padding": None, "truncation": None}).encode())


def text_fingerprint(sentences: Sequence[str]) -> str:
    """Return a fingerprint of sentences and their order, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(sentence.encode("utf-8") + b"\n")
    return digest.hexdigest()[:16]


def describe_texts(texts: Sequence[str]) -> Texts:
    """Return the digest and the length of each text."""
    described = np.empty(len(texts), _TEXT)
    digests = b"".join(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest() for text in texts)
    described["digest"] = np.frombuffer(digests, np.uint64)
    described["characters"] = [len(text) for text in texts]
    return described


@dataclass(frozen=True)
class _Chunk:
    """A line of the log: rows `first` to `last` (exclusive) in encoding order, and the checksum of their embeddings."""

    first: int
    last: int
    sha256: str


class EmbeddingCache:
    """Embeddings of one list of texts on disk, filled chunk by chunk in the order of the texts' lengths.

    A chunk counts as complete only if its checksum matches, so that an interrupted run resumes and damaged chunks are
    encoded again.

    Args:
        folder: Folder of the cache; created if it does not exist.
        texts: The texts, from `describe_texts`.
        dimension: Embedding dimension.

    Attributes:
        folder: The same.
        texts: The same.
        shape: Number of texts and embedding dimension.
        embeddings: float16 of that shape, memory-mapped for writing, in the order of the texts.
    """

    def __init__(self, folder: Path, texts: Texts, dimension: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.texts, self.shape = folder, texts, (len(texts), dimension)
        self.embeddings = _open_embeddings(folder / EMBEDDINGS_FILE, self.shape)
        if not (folder / TEXTS_FILE).is_file():
            with atomic_file(folder / TEXTS_FILE, force=True) as temporary, temporary.open("wb") as file:
                np.save(file, texts)
        self._order = _encoding_order(texts)
        self._log = folder / CHUNKS_FILE
        self._complete = _intact_chunks(self._log, self.embeddings, self._order)

    @property
    def missing_rows(self) -> npt.NDArray[np.int64]:
        """The rows whose embeddings are not on disk, int64 (rows,)."""
        missing = np.ones(len(self._order), dtype=bool)
        missing[_rows_of(self._complete.values(), self._order)] = False
        return np.flatnonzero(missing)

    def fill(self, encode: Callable[[npt.NDArray[np.int64]], Embeddings]) -> Iterator[npt.NDArray[np.int64]]:
        """Encode and write the missing chunks.

        Args:
            encode: Function from row numbers, int64 (rows,), to their embeddings, float16 (rows, dimension).

        Yields:
            The rows of each chunk, int64 (rows,), after it has reached the disk.
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
                yield rows


def copy_from_other_caches(cache: EmbeddingCache, folders: Iterable[Path]) -> npt.NDArray[np.bool_]:
    """Copy missing embeddings of a cache from other caches of the same teacher.

    They count as complete only after `fill` has written their chunks.

    Args:
        cache: The cache.
        folders: Folders of the other caches; other processes may be filling them.

    Returns:
        Which rows were copied, bool (texts,).
    """
    missing, copied = cache.missing_rows, np.zeros(len(cache.texts), dtype=bool)
    for folder in folders:
        if not missing.size:
            break
        try:
            texts = np.load(folder / TEXTS_FILE)
            shape = (len(texts), cache.shape[1])
            embeddings = np.memmap(folder / EMBEDDINGS_FILE, dtype=np.float16, mode="r", shape=shape)
        except (OSError, ValueError, EOFError):  # not a cache that lists its texts
            continue
        order = _encoding_order(texts)
        rows = _rows_of(_intact_chunks(folder / CHUNKS_FILE, embeddings, order).values(), order)
        found, positions = _find(cache.texts[missing], texts[rows])
        cache.embeddings[missing[found]] = embeddings[rows[positions]]
        copied[missing[found]] = True
        missing = missing[~found]
    return copied


def _find(texts: Texts, others: Texts) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return which texts are among others, bool (texts,), and the positions there of those that are, int64."""
    if not len(others):
        return np.zeros(len(texts), dtype=bool), np.empty(0, dtype=np.int64)
    order = np.argsort(others["digest"])
    nearest = np.searchsorted(others["digest"], texts["digest"], sorter=order)
    positions = order[np.minimum(nearest, len(others) - 1)]
    found = others[positions] == texts
    return found, positions[found]


def _encoding_order(texts: Texts) -> npt.NDArray[np.int64]:
    return np.argsort(texts["characters"], kind="stable")


def _rows_of(chunks: Iterable[_Chunk], order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([order[:0], *(order[chunk.first : chunk.last] for chunk in chunks)])


def _intact_chunks(log: Path, embeddings: Embeddings, order: npt.NDArray[np.int64]) -> dict[int, _Chunk]:
    if not log.is_file():
        return {}
    chunks: dict[int, _Chunk] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        try:
            chunk = _Chunk(**json.loads(line))
        except (ValueError, TypeError):  # a line that a killed run left incomplete
            continue
        if chunk.sha256 == _checksum(embeddings[order[chunk.first : chunk.last]]):
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
