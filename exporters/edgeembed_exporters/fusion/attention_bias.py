"""Classify the tensors that are added to attention scores, by running the graph: padding masks and other biases.

Every architecture computes its mask by nodes of its own, so the values are a more reliable sign than the nodes.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import onnx

from edgeembed_exporters.onnx.graph import probe

_BATCH = 2
_MASKED = -1e4
"""Scores of padding tokens are at or below this, as in all encoders of transformers."""


class AttentionBiases:
    """Values of all attention biases of a graph for a batch with padding.

    Args:
        model: A model with the inputs input_ids and attention_mask.
        biases: Names of the tensors that are added to attention scores.
        tokens: Maximum number of tokens. The graph is run at this length, since a sliding window hides tokens only in
            texts that are longer than the window.
    """

    def __init__(self, model: onnx.ModelProto, biases: Sequence[str], tokens: int) -> None:
        self._mask = np.ones((_BATCH, tokens), dtype=np.bool_)
        self._mask[1, (tokens + 1) // 2 :] = False
        # All ids are equal, so that a bias that depends on ids does not look like a padding mask.
        ids = np.ones(self._mask.shape, dtype=np.int64)
        values = probe(model, biases)(ids, self._mask.astype(np.int64)) if biases else []
        self._values = dict(zip(biases, values, strict=True))

    def are_supported(self, biases: Iterable[str]) -> bool:
        """Return whether MultiHeadAttention accepts each of the biases, as a padding mask or as an attention bias."""
        return all(self.is_padding_mask(name) or self._covers_all_pairs(name) for name in biases)

    def is_padding_mask(self, name: str) -> bool:
        """Return whether a bias hides all padding tokens and changes no other score."""
        values = self._values[name]
        if values.ndim != 4 or (values.shape[0], values.shape[3]) != self._mask.shape:
            return False
        padding = np.broadcast_to(~self._mask[:, None, None, :], (_BATCH, *values.shape[1:]))
        return bool((values[padding] <= _MASKED).all() and (values[~padding] == 0).all())

    def _covers_all_pairs(self, name: str) -> bool:
        """Return whether a bias has the shape (..., ..., tokens, tokens)."""
        values = self._values[name]
        return values.ndim == 4 and values.shape[2:] == (self._mask.shape[1],) * 2
