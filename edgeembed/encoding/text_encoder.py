"""Load a model or a bundle as a function from texts to float16 embeddings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from edgeembed_exporters.space import embedding_space
from edgeembed_runtime import Bundle, Encoder
from edgeembed_runtime.errors import InputError, TruncationWarning
from edgeembed_runtime.shards import EncodedBy

from edgeembed.hardware import default_device, has_bf16
from edgeembed.models import find_model, is_bundle, load_model
from edgeembed.provenance import stated_space
from edgeembed.teacher.cache import Embeddings, model_fingerprint
from edgeembed.teacher.encoding import encode_texts, with_normalization

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
    if not is_bundle(folder):
        device = default_device()
        loaded = with_normalization(load_model(model, device=device), normalize=normalize)
        fingerprint = model_fingerprint(folder, normalize=normalize)
        precision = "bf16" if has_bf16(device) else "fp32"
        encoded_by = EncodedBy(
            os.fspath(model),
            fingerprint,
            int(loaded.get_embedding_dimension()),
            normalize,
            precision,
            space=stated_space(folder) or embedding_space(loaded),
        )
        if precision == "bf16":
            loaded = loaded.bfloat16()
        return lambda texts: encode_texts(loaded, list(texts)), encoded_by
    bundle = Bundle.open(folder, verify=True)
    if bundle.is_classifier:
        raise InputError(f"{os.fspath(model)} is a classifier; expected an encoder")
    if not normalize:
        raise InputError(f"{os.fspath(model)} is a bundle, whose embeddings are normalized; omit --no-normalize")
    encoder = Encoder(bundle, threads=threads)
    encoded_by = EncodedBy(os.fspath(model), bundle.fingerprint, bundle.dimension, True, bundle.precision, bundle.space)

    def encode(texts: Sequence[str]) -> Embeddings:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)
            return encoder.encode_document(list(texts)).astype(np.float16)

    return encode, encoded_by
