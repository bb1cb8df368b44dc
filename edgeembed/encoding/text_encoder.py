"""Load a model or a bundle as a function from texts to float16 embeddings."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from edgeembed_runtime import Bundle, Encoder
from edgeembed_runtime.errors import InputError, TruncationWarning
from edgeembed_runtime.shards import EncodedBy

from edgeembed.models import find_model, is_bundle
from edgeembed.teacher.cache import Embeddings, model_fingerprint

TextEncoder = Callable[[Sequence[str]], Embeddings]
"""A function from texts to their embeddings, float16 (texts, dimension)."""


def load_text_encoder(
    model: str | os.PathLike[str], *, normalize: bool, prompt: str | None = None, threads: int | None = 1
) -> tuple[TextEncoder, EncodedBy]:
    """Load a model or a bundle.

    Args:
        model: A built-in bundle, a folder, an installed package that carries a model, or a hub id.
        normalize: Whether the embeddings are to be L2-normalized. Those of a bundle always are.
        prompt: The text to put before each text; None for the model's prompt for documents, see `Prompts.document`.
        threads: Threads of a bundle's encoder; None uses all cores.

    Returns:
        The function, and what identifies its embeddings.

    Raises:
        InputError: If there is no such model, it is a classifier's bundle, or a bundle is not to be normalized.
    """
    folder = find_model(model)
    name = os.fspath(model)
    if is_bundle(folder):
        return _load_bundle(name, folder, normalize=normalize, given=prompt, threads=threads)
    return _load_torch_model(name, folder, normalize=normalize, given=prompt)


def _load_bundle(
    name: str, folder: Path, *, normalize: bool, given: str | None, threads: int | None
) -> tuple[TextEncoder, EncodedBy]:
    bundle = Bundle.open(folder, verify=True)
    if bundle.is_classifier:
        raise InputError(f"{name} is a classifier; expected an encoder")
    if not normalize:
        raise InputError(f"{name} is a bundle, whose embeddings are normalized; omit --no-normalize")
    encoder = Encoder(bundle, threads=threads)
    prompt = encoder.document_prompt if given is None else given
    # As an encoder of documents it is the bundle itself, whose fingerprint indexes compare.
    changes = "" if prompt == encoder.document_prompt else f"prompt {prompt}"
    fingerprint = hashlib.sha256((bundle.fingerprint + changes).encode()).hexdigest() if changes else bundle.fingerprint

    def encode(texts: Sequence[str]) -> Embeddings:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)
            return encoder.encode(list(texts), prompt=prompt).astype(np.float16)

    return encode, EncodedBy(name, fingerprint, bundle.dimension, True, bundle.precision, bundle.space, prompt)


def _load_torch_model(name: str, folder: Path, *, normalize: bool, given: str | None) -> tuple[TextEncoder, EncodedBy]:
    # Here, because these import torch: workers that encode with a bundle start in a tenth of the time without it.
    from edgeembed_exporters.space import embedding_space

    from edgeembed.hardware import default_device, has_bf16
    from edgeembed.models import load_model
    from edgeembed.provenance import stated_space
    from edgeembed.teacher.encoding import encode_texts, with_normalization
    from edgeembed.teacher.prompts import Prompts

    device = default_device()
    loaded = with_normalization(load_model(folder, device=device), normalize=normalize)
    prompt = Prompts.of(folder).document(given)
    fingerprint = model_fingerprint(folder, normalize=normalize, prompt=prompt)
    precision = "bf16" if has_bf16(device) else "fp32"
    space = stated_space(folder) or embedding_space(loaded)
    dimension = int(loaded.get_embedding_dimension())
    encoded_by = EncodedBy(name, fingerprint, dimension, normalize, precision, space, prompt)
    if precision == "bf16":
        loaded = loaded.bfloat16()
    return lambda texts: encode_texts(loaded, list(texts), prompt), encoded_by
