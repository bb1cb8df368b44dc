"""The threshold from which the runtime's interests take two texts for one topic, measured for an encoder."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from edgeembed_runtime import Bundle, Encoder
from edgeembed_runtime.characters import is_blank

from edgeembed_exporters.rank_agreement import normalize_rows

_UNRELATED_SHARE = 0.02
_MIN_TEXTS, _MAX_TEXTS = 100, 1_000
_MIN_COSINE = 0.05  # the manifest needs more than 0
_MAX_COSINE = 0.999999  # equal texts reach it in float32


def measure_near_cosine(bundle: Bundle | Path, texts: Sequence[str]) -> float | None:
    """Return the cosine that 2 % of random pairs of texts reach: the 98th percentile over all pairs.

    Nearly all pairs in a sample of texts are of different topics, so the value is specific to how an encoder spreads
    unrelated texts, and to the range of the sample. With the two encoders in the wheel, it is the value that was
    chosen with simulated users (`experiments/interests/interests.py`).

    Args:
        bundle: The bundle of an encoder.
        texts: Real texts; 1,000 are used.

    Returns:
        The cosine, rounded to two decimals, or to more if it is nearly 1; None if there are fewer than 100 different
        texts with a known word.
    """
    sample = [text for text in dict.fromkeys(texts) if not is_blank(text)][:_MAX_TEXTS]
    encoder = Encoder(bundle, threads=None)
    embeddings = normalize_rows(
        encoder.encode_document(sample, on_truncate="ignore", on_unknown="ignore", show_progress_bar=False)
    )
    embeddings = embeddings[embeddings.any(axis=1)]
    if len(embeddings) < _MIN_TEXTS:
        return None
    cosines = (embeddings @ embeddings.T)[np.triu_indices(len(embeddings), 1)]
    cosine = float(np.clip(np.quantile(cosines, 1 - _UNRELATED_SHARE), _MIN_COSINE, _MAX_COSINE))
    digits = max(2, 1 - math.floor(math.log10(1 - cosine)))  # two of 1 - cosine: many encoders' cosines are near 1
    return min(round(cosine, digits), _MAX_COSINE)
