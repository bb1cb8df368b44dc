"""Encode a corpus with the teacher, once per teacher and text."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

from edgeembed.hardware import has_bf16
from edgeembed.teacher.cache import (
    EMBEDDINGS_FILE,
    EmbeddingCache,
    copy_from_other_caches,
    describe_texts,
    text_fingerprint,
)
from edgeembed.teacher.shards import ShardFolder, select_embeddings

_BATCH_SIZE = 128
# Smaller batches leave an accelerator waiting for launches of small kernels; larger ones of long texts need gigabytes.
_BATCH_SIZE_ON_ACCELERATORS = 256


@dataclass(frozen=True)
class CachedEmbeddings:
    """A teacher's embeddings of a list of sentences, on disk; pickling it does not copy them.

    Attributes:
        folder: Folder of the cache.
        shape: Number of sentences and embedding dimension.
        precision: Precision that the teacher computed in, `bf16` or `fp32`.
        reused_sentences: Number of sentences whose embeddings were on disk already.
    """

    folder: Path
    shape: tuple[int, int]
    precision: str
    reused_sentences: int

    @property
    def embeddings(self) -> npt.NDArray[np.float16]:
        """The embeddings, float16 (sentences, dimension), memory-mapped, in the order of the sentences."""
        return np.memmap(self.folder / EMBEDDINGS_FILE, dtype=np.float16, mode="r", shape=self.shape)


def encode_with_cache(
    teacher: SentenceTransformer,
    fingerprint: str,
    sentences: Sequence[str],
    cache: Path,
    *,
    prompt: str = "",
    progress: Callable[[int], None] = lambda _done: None,
) -> CachedEmbeddings:
    """Encode sentences with the teacher, reusing the embeddings that are on disk.

    Sentences are encoded in order of length, which minimizes padding, and written in checksummed chunks: an interrupted
    run resumes at the first missing chunk, and damaged chunks are encoded again. Embeddings that caches of other texts
    hold, such as those of an earlier seed or of a smaller corpus, are copied.

    Args:
        teacher: The teacher. Where the device is fast in bfloat16, a bfloat16 copy encodes.
        fingerprint: Fingerprint of the teacher and the prompt, from `model_fingerprint`.
        sentences: The sentences.
        cache: Folder of all caches. This one is a subfolder named by teacher, text and precision.
        prompt: The text that the teacher reads before each sentence.
        progress: Called with the number of sentences encoded so far.

    Returns:
        The embeddings of all sentences.

    Raises:
        InputError: If there are no sentences, or the cache cannot be read or written.
    """
    if not sentences:
        raise InputError("no sentences to encode; expected at least one: use a corpus that contains text")
    precision = "bf16" if has_bf16(teacher.device.type) else "fp32"
    folder = cache / f"{fingerprint[:16]}-{text_fingerprint(sentences)}-{precision}"
    with _cache_errors(folder):
        stored = EmbeddingCache(folder, describe_texts(sentences), int(teacher.get_embedding_dimension()))
        others = (each for each in sorted(cache.glob(f"{fingerprint[:16]}-*-{precision}")) if each != folder)
        copied = copy_from_other_caches(stored, others)
        reused = done = len(sentences) - len(stored.missing_rows) + int(copied.sum())
        progress(done)
        # A copy, because the student may be initialized from the teacher's unrounded weights.
        encoder = copy.deepcopy(teacher).bfloat16() if precision == "bf16" and reused < len(sentences) else teacher

        def encode(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float16]:
            encoded, new = stored.embeddings[rows], rows[~copied[rows]]
            if new.size:
                encoded[~copied[rows]] = encode_texts(encoder, [sentences[row] for row in new], prompt)
            return encoded

        for rows in stored.fill(encode):
            done += int((~copied[rows]).sum())
            progress(done)
    return CachedEmbeddings(folder, stored.shape, precision, reused)


def copy_from_shards(shards: ShardFolder, sentences: Sequence[str], cache: Path) -> CachedEmbeddings:
    """Copy the embeddings of sentences from shards into a cache, in the order of the sentences.

    Args:
        shards: The shards, complete, of the teacher.
        sentences: Distinct sentences.
        cache: Folder of all caches.

    Returns:
        The embeddings of all sentences.

    Raises:
        InputError: If the shards lack a sentence, or the cache cannot be written.
    """
    model = shards.model
    folder = cache / f"{model.fingerprint[:16]}-{text_fingerprint(sentences)}-{model.precision}"
    with _cache_errors(folder):
        stored = EmbeddingCache(folder, describe_texts(sentences), model.dimension)
        if len(stored.missing_rows):
            selected = select_embeddings(shards, sentences, stored.embeddings)
            for _ in stored.fill(lambda rows: selected[rows]):
                pass
    return CachedEmbeddings(folder, stored.shape, model.precision, len(sentences))


@contextmanager
def _cache_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # the reader of the progress went away, which is no fault of the cache
        raise
    except OSError as error:
        raise InputError(
            f"cannot read or write the teacher cache {folder}: {error.strerror or error}; expected a readable and "
            "writable folder with free space: check it or choose another --cache"
        ) from error


def with_normalization(teacher: SentenceTransformer, *, normalize: bool) -> SentenceTransformer:
    """Return the teacher with or without a final Normalize module.

    Args:
        teacher: The teacher. It is returned unchanged if it ends as requested already.
        normalize: Whether its embeddings are to be L2-normalized.
    """
    *before, last = list(teacher)
    if isinstance(last, Normalize) == normalize:
        return teacher
    modules = [*before, last, Normalize()] if normalize else before
    return SentenceTransformer(
        modules=modules,
        device=str(teacher.device),
        prompts=teacher.prompts,
        default_prompt_name=teacher.default_prompt_name,
        truncate_dim=teacher.truncate_dim,
    ).eval()


def encode_texts(teacher: SentenceTransformer, sentences: list[str], prompt: str) -> npt.NDArray[np.float16]:
    """Return the embeddings of sentences, float16 (sentences, dimension), computed in the teacher's own precision.

    Args:
        teacher: The teacher.
        sentences: The sentences.
        prompt: The text that the teacher reads before each of them, in place of its own prompts; empty for none.
    """
    batch_size = _BATCH_SIZE if teacher.device.type == "cpu" else _BATCH_SIZE_ON_ACCELERATORS
    encoded = teacher.encode_document(
        sentences, prompt=prompt, batch_size=batch_size, convert_to_tensor=True, show_progress_bar=False
    )
    return np.ascontiguousarray(encoded.float().cpu().numpy().astype(np.float16))
