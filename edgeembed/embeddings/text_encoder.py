"""Models and bundles as encoders of texts, all with one rule for prompts."""

from __future__ import annotations

import copy
import os
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from edgeembed_runtime import Bundle, Encoder
from edgeembed_runtime.errors import InputError, TruncationWarning
from edgeembed_runtime.store_manifest import EncodedBy

from edgeembed.embeddings.fingerprint import combined_fingerprint, model_fingerprint
from edgeembed.embeddings.store import EmbeddingStore, Vectors
from edgeembed.models import find_model, is_bundle

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_BATCH_SIZE = 128
# Smaller batches leave an accelerator waiting for launches of small kernels; larger ones of long texts need gigabytes.
_BATCH_SIZE_ON_ACCELERATORS = 256
_GROUP_ROWS = 4096
_ROWS_PER_SHARD = 4096  # the most that a killed run loses


@dataclass(frozen=True)
class TextEncoder:
    """An encoder of texts.

    Attributes:
        identity: What tells its vectors from those of others.
        batch_size: The number of texts in a batch.
        encode_batch: Returns the vectors of texts, float16 (texts, dimension).
    """

    identity: EncodedBy
    batch_size: int
    encode_batch: Callable[[list[str]], Vectors]

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[npt.NDArray[np.int64], Vectors]]:
        """Yield the vectors of all texts, batch by batch.

        The texts of a batch are of one length, which saves padding. The batches come in a random order, always the
        same, so that the first ones tell how long all take.

        Args:
            texts: The texts.

        Yields:
            The places of the batch's texts, int64 (batch,), and their vectors, float16 (batch, dimension).
        """
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        by_length, batches = np.argsort(lengths, kind="stable"), []
        for first in range(0, len(texts), _GROUP_ROWS):
            group = by_length[first : first + _GROUP_ROWS]
            group = group[np.argsort(-lengths[group])]  # as sentence-transformers sorts them
            batches += [group[start : start + self.batch_size] for start in range(0, len(group), self.batch_size)]
        random.Random(0).shuffle(batches)  # noqa: S311  # no secret
        for batch in batches:
            yield batch, self.encode_batch([texts[place] for place in batch.tolist()])

    def encode(self, texts: Sequence[str], progress: Callable[[int], None] = lambda _done: None) -> Vectors:
        """Return the vectors of texts, float16 (texts, dimension).

        Args:
            texts: The texts.
            progress: Called with the number of texts encoded so far.
        """
        vectors, done = np.empty((len(texts), self.identity.dimension), np.float16), 0
        for places, encoded in self.batches(texts):
            vectors[places] = encoded
            done += len(places)
            progress(done)
        return vectors

    def fill(
        self, store: EmbeddingStore, texts: Sequence[str], progress: Callable[[int], None] = lambda _done: None
    ) -> int:
        """Encode the texts that a store lacks, and add them to it. A run that was interrupted continues there.

        Args:
            store: A store of this encoder.
            texts: Distinct texts.
            progress: Called with the number of texts that the store holds, or that are encoded.

        Returns:
            The number of texts that the store held before.

        Raises:
            InputError: If the store cannot be written.
        """
        missing = [texts[row] for row in np.flatnonzero(store.find(texts) < 0).tolist()]
        reused = done = len(texts) - len(missing)
        progress(reused)
        places: list[int] = []
        vectors: list[Vectors] = []
        for batch, encoded in self.batches(missing):
            places += batch.tolist()
            vectors.append(encoded)
            done += len(batch)
            if len(places) >= _ROWS_PER_SHARD or done == len(texts):
                pending = [missing[place] for place in places]
                store.append(pending, np.concatenate(vectors), is_complete=done == len(texts))
                places, vectors = [], []
            progress(done)
        return reused


def load_text_encoder(
    model: str | os.PathLike[str], *, normalize: bool, prompt: str | None = None, threads: int | None = 1
) -> TextEncoder:
    """Load a model or a bundle.

    Args:
        model: A built-in bundle, a folder, an installed package that carries a model, or a hub id.
        normalize: Whether the embeddings are to be L2-normalized. Those of a bundle always are.
        prompt: The text to put before each text; None for the model's prompt for documents, see `Prompts.document`.
        threads: Threads of a bundle's encoder; None uses all cores.

    Raises:
        InputError: If there is no such model, it is a classifier's bundle, or a bundle is not to be normalized.
    """
    folder = find_model(model)
    name = os.fspath(model)
    if is_bundle(folder):
        return _load_bundle(name, folder, normalize=normalize, given=prompt, threads=threads)
    # Here, because these import torch: workers that encode with a bundle start in a tenth of the time without it.
    from edgeembed.embeddings.prompts import Prompts
    from edgeembed.hardware import default_device
    from edgeembed.models import load_model

    loaded = with_normalization(load_model(folder, device=default_device()), normalize=normalize)
    return torch_encoder(name, loaded, folder, Prompts.of(folder).document(prompt))


def _load_bundle(name: str, folder: Path, *, normalize: bool, given: str | None, threads: int | None) -> TextEncoder:
    bundle = Bundle.open(folder, verify=True)
    if bundle.is_classifier:
        raise InputError(f"{name} is a classifier; expected an encoder")
    if not normalize:
        raise InputError(f"{name} is a bundle, whose embeddings are normalized; omit --no-normalize")
    encoder = Encoder(bundle, threads=threads)
    prompt = encoder.document_prompt if given is None else given
    # As an encoder of documents it is the bundle itself, whose fingerprint indexes compare.
    is_own = prompt == encoder.document_prompt
    fingerprint = bundle.fingerprint if is_own else combined_fingerprint(bundle.fingerprint, prompt)

    def encode(texts: list[str]) -> Vectors:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)
            return encoder.encode(texts, prompt=prompt).astype(np.float16)

    identity = EncodedBy(name, fingerprint, bundle.dimension, True, bundle.precision, bundle.space, prompt)
    return TextEncoder(identity, _BATCH_SIZE, encode)


def torch_encoder(name: str, model: SentenceTransformer, folder: Path | None, prompt: str) -> TextEncoder:
    """Return a loaded model as an encoder. Where its device is fast in bfloat16, a bfloat16 copy encodes.

    Args:
        name: The model's name.
        model: The model, which stays as it is.
        folder: The folder that it was loaded from; None for a model that was made in memory.
        prompt: The text that it reads before each text, in place of its own prompts; empty for none.
    """
    from edgeembed_exporters.space import embedding_space
    from sentence_transformers.sentence_transformer.modules import Normalize

    from edgeembed.hardware import has_bf16
    from edgeembed.provenance import stated_space

    is_normalized = isinstance(model[-1], Normalize)
    is_rounded = has_bf16(model.device.type)
    identity = EncodedBy(
        name=name,
        fingerprint=model_fingerprint(model if folder is None else folder, normalize=is_normalized, prompt=prompt),
        dimension=int(model.get_embedding_dimension()),
        normalized=is_normalized,
        precision="bf16" if is_rounded else "fp32",
        space=(stated_space(folder) if folder else None) or embedding_space(model),
        prompt=prompt,
    )
    batch_size = _BATCH_SIZE if model.device.type == "cpu" else _BATCH_SIZE_ON_ACCELERATORS

    @cache  # a copy, because the student may be initialized from the unrounded weights; only if a text is missing
    def encoding_model() -> SentenceTransformer:
        return copy.deepcopy(model).bfloat16() if is_rounded else model

    def encode(texts: list[str]) -> Vectors:
        encoded = encoding_model().encode_document(
            texts, prompt=prompt, batch_size=batch_size, convert_to_tensor=True, show_progress_bar=False
        )
        return np.ascontiguousarray(encoded.float().cpu().numpy().astype(np.float16))

    return TextEncoder(identity, batch_size, encode)


def with_normalization(model: SentenceTransformer, *, normalize: bool) -> SentenceTransformer:
    """Return a model with or without a final Normalize module.

    Args:
        model: The model. It is returned unchanged if it ends as requested already.
        normalize: Whether its embeddings are to be L2-normalized.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize

    *before, last = list(model)
    if isinstance(last, Normalize) == normalize:
        return model
    modules = [*before, last, Normalize()] if normalize else before
    return SentenceTransformer(
        modules=modules,
        device=str(model.device),
        prompts=model.prompts,
        default_prompt_name=model.default_prompt_name,
        truncate_dim=model.truncate_dim,
    ).eval()
