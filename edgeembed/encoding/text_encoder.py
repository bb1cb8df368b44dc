"""Load a model or a bundle as a function from texts to float16 embeddings."""

from __future__ import annotations

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
    model: str | os.PathLike[str], *, normalize: bool, threads: int | None = 1
) -> tuple[TextEncoder, EncodedBy]:
    """Load a model or a bundle.

    Args:
        model: A built-in bundle, a folder, an installed package that carries a model, or a hub id.
        normalize: Whether the embeddings are to be L2-normalized. Those of a bundle always are.
        threads: Threads of a bundle's encoder; None uses all cores.

    Returns:
        The function, and what identifies its embeddings.

    Raises:
        InputError: If there is no such model, it is a classifier's bundle, or a bundle is not to be normalized.
    """
    folder = find_model(model)
    name = os.fspath(model)
    if is_bundle(folder):
        return _load_bundle(name, folder, normalize=normalize, threads=threads)
    return _load_torch_model(name, folder, normalize=normalize)


def _load_bundle(name: str, folder: Path, *, normalize: bool, threads: int | None) -> tuple[TextEncoder, EncodedBy]:
    bundle = Bundle.open(folder, verify=True)
    if bundle.is_classifier:
        raise InputError(f"{name} is a classifier; expected an encoder")
    if not normalize:
        raise InputError(f"{name} is a bundle, whose embeddings are normalized; omit --no-normalize")
    encoder = Encoder(bundle, threads=threads)

    def encode(texts: Sequence[str]) -> Embeddings:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)
            return encoder.encode_document(list(texts)).astype(np.float16)

    return encode, EncodedBy(name, bundle.fingerprint, bundle.dimension, True, bundle.precision, bundle.space)


def _load_torch_model(name: str, folder: Path, *, normalize: bool) -> tuple[TextEncoder, EncodedBy]:
    # Here, because these import torch: workers that encode with a bundle start in a tenth of the time without it.
    from edgeembed_exporters.space import embedding_space

    from edgeembed.hardware import default_device, has_bf16
    from edgeembed.models import load_model
    from edgeembed.provenance import stated_space
    from edgeembed.teacher.encoding import encode_texts, with_normalization

    device = default_device()
    loaded = with_normalization(load_model(folder, device=device), normalize=normalize)
    fingerprint = model_fingerprint(folder, normalize=normalize)
    precision = "bf16" if has_bf16(device) else "fp32"
    space = stated_space(folder) or embedding_space(loaded)
    encoded_by = EncodedBy(name, fingerprint, int(loaded.get_embedding_dimension()), normalize, precision, space)
    if precision == "bf16":
        loaded = loaded.bfloat16()
    return lambda texts: encode_texts(loaded, list(texts)), encoded_by
