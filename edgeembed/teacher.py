"""The teacher's vectors of a corpus, encoded once and kept on disk."""

import copy
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.storage.files import sha256
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

from edgeembed.hardware import has_bf16

_CHUNK = 4096  # sentences between two writes to disk: what a killed run loses at the most
_BATCH = 128


@dataclass(frozen=True)
class TeacherCache:
    """A teacher's vectors of one list of sentences.

    Attributes:
        folder: Where they lie.
        vectors: float16 (sentences, width), memory-mapped, in the order of the sentences.
        precision: What the teacher computed in, `bf16` or `fp32`.
        reused_sentences: How many were found on disk instead of encoded.
    """

    folder: Path
    vectors: npt.NDArray[np.float16]
    precision: str
    reused_sentences: int


@dataclass(frozen=True)
class _Chunk:
    first: int
    last: int
    sha256: str


def teacher_vectors(
    teacher: SentenceTransformer,
    fingerprint: str,
    sentences: Sequence[str],
    cache: Path,
    *,
    progress: Callable[[int], None] = lambda _done: None,
) -> TeacherCache:
    """Encode sentences with the teacher, or find them encoded.

    Sentences are encoded longest last, so that a batch pads little, and in chunks that are checksummed as they are
    written: a run that was killed goes on where it stopped, and a chunk that does not match is encoded again.

    Args:
        teacher: The teacher; a copy encodes in bfloat16 where the device is fast in it.
        fingerprint: What identifies the teacher, from `teacher_fingerprint`.
        sentences: The corpus.
        cache: Folder that holds every cache; this one gets a folder of its own, keyed by teacher and text.
        progress: Called with the number of sentences done so far.

    Returns:
        The cache, complete.

    Raises:
        InputError: If there are no sentences, or the cache cannot be read or written.
    """
    if not sentences:
        raise InputError("there are no sentences to encode; expected at least one: give a corpus with text in it")
    precision = "bf16" if has_bf16(teacher.device.type) else "fp32"
    width = int(teacher.get_embedding_dimension())
    folder = cache / f"{fingerprint[:16]}-{text_key(sentences)}-{precision}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        vectors = _open_vectors(folder / "vectors.f16", (len(sentences), width))
        order = np.argsort([len(sentence) for sentence in sentences], kind="stable")
        done = _intact_chunks(folder / "chunks.jsonl", vectors, order)
        reused = sum(chunk.last - chunk.first for chunk in done.values())
        progress(reused)
        _encode_missing(teacher, precision, sentences, order, vectors, done, folder / "chunks.jsonl", progress)
    except BrokenPipeError:  # the reader of the progress went away, which has nothing to do with the cache
        raise
    except OSError as error:
        raise InputError(
            f"cannot read or write the teacher cache {folder}: {error.strerror or error}; expected a folder with room "
            "that may be read and written: check it or give another --cache"
        ) from error
    readonly = np.memmap(folder / "vectors.f16", dtype=np.float16, mode="r", shape=vectors.shape)
    return TeacherCache(folder, readonly, precision, reused)


def teacher_fingerprint(folder: Path, *, unit: bool = True) -> str:
    """Identify a teacher by the bytes of its files.

    Args:
        folder: A sentence-transformers folder.
        unit: Whether its vectors have unit length.

    Returns:
        A SHA-256 in hexadecimal over the names and bytes of all files that bear on its vectors.
    """
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix in {".json", ".safetensors", ".bin", ".txt", ".model", ".spm"}:
            digest.update(f"{file.relative_to(folder)}:{sha256(file)}\n".encode())
    if not unit:
        digest.update(b"of any length")
    return digest.hexdigest()


def text_key(sentences: Sequence[str]) -> str:
    """Identify a corpus by its sentences and their order, in 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(sentence.encode("utf-8") + b"\n")
    return digest.hexdigest()[:16]


def with_length(teacher: SentenceTransformer, *, unit: bool) -> SentenceTransformer:
    """Give a teacher whose vectors have unit length, or whatever length they have before that.

    Args:
        teacher: A model, which may end in a Normalize module.
        unit: Whether the vectors are to have unit length.
    """
    *before, last = list(teacher)
    if isinstance(last, Normalize) == unit:
        return teacher
    modules = [*before, last, Normalize()] if unit else before
    return SentenceTransformer(modules=modules, device=str(teacher.device)).eval()


def _open_vectors(file: Path, shape: tuple[int, int]) -> npt.NDArray[np.float16]:
    size_bytes = shape[0] * shape[1] * 2
    if not file.is_file() or file.stat().st_size != size_bytes:
        with atomic_file(file, force=True) as beside, beside.open("wb") as handle:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(handle.fileno(), 0, size_bytes)  # a full disk shows now, not as a bus error later
            else:
                handle.truncate(size_bytes)
    return np.memmap(file, dtype=np.float16, mode="r+", shape=shape)


def _intact_chunks(file: Path, vectors: npt.NDArray[np.float16], order: npt.NDArray[np.int64]) -> dict[int, _Chunk]:
    if not file.is_file():
        return {}
    chunks: dict[int, _Chunk] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            chunk = _Chunk(**json.loads(line))
        except (ValueError, TypeError):  # the line that a kill cut short
            continue
        if chunk.sha256 == _checksum(vectors[order[chunk.first : chunk.last]]):
            chunks[chunk.first] = chunk
    return chunks


def _encode_missing(  # one chunk's life from text to disk
    teacher: SentenceTransformer,
    precision: str,
    sentences: Sequence[str],
    order: npt.NDArray[np.int64],
    vectors: npt.NDArray[np.float16],
    done: dict[int, _Chunk],
    file: Path,
    progress: Callable[[int], None],
) -> None:
    if sum(chunk.last - chunk.first for chunk in done.values()) == len(sentences):
        return
    # A copy, because a student may be made of the teacher's own weights, unrounded.
    encoder = copy.deepcopy(teacher).bfloat16() if precision == "bf16" else teacher
    count = sum(chunk.last - chunk.first for chunk in done.values())
    whole = not file.is_file() or file.read_bytes()[-1:] in {b"", b"\n"}
    with file.open("a", encoding="utf-8") as log:
        if not whole:
            log.write("\n")  # ends the line that a kill cut short, so that the next one can be read
        for first in range(0, len(sentences), _CHUNK):
            if first in done:
                continue
            rows = order[first : first + _CHUNK]
            encoded = _encode(encoder, [sentences[row] for row in rows])
            vectors[rows] = encoded
            vectors.flush()  # type: ignore[attr-defined]  # it is a memmap
            log.write(json.dumps(asdict(_Chunk(first, first + len(rows), _checksum(encoded)))) + "\n")
            log.flush()
            os.fsync(log.fileno())
            count += len(rows)
            progress(count)


def _encode(teacher: SentenceTransformer, sentences: list[str]) -> npt.NDArray[np.float16]:
    encoded = teacher.encode(sentences, batch_size=_BATCH, convert_to_tensor=True, show_progress_bar=False)
    return np.ascontiguousarray(encoded.float().cpu().numpy().astype(np.float16))


def _checksum(vectors: npt.NDArray[np.float16]) -> str:
    return hashlib.sha256(np.ascontiguousarray(vectors).tobytes()).hexdigest()
