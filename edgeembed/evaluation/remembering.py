"""An encoder that reads each text once, however many tasks ask for it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed.evaluation.encoders import SentenceEncoder, vectors


class RememberingEncoder:
    """Encodes texts as another encoder does and keeps their vectors.

    Args:
        encoder: What encodes.
        symmetric: Whether queries and documents are encoded as sentences are.
    """

    def __init__(self, encoder: SentenceEncoder, *, symmetric: bool = False) -> None:
        self._sentences = _Memory(encoder.encode)
        self._queries = self._sentences if symmetric else _Memory(encoder.encode_query)
        self._documents = self._sentences if symmetric else _Memory(encoder.encode_document)

    def encode(self, sentences: Any, /, *, batch_size: int = 32) -> npt.NDArray[np.float32]:  # noqa: ARG002
        """Give (n, dim) vectors of n texts."""
        return self._sentences.recall(sentences)

    def encode_query(self, sentences: Any, /, *, batch_size: int = 32) -> npt.NDArray[np.float32]:  # noqa: ARG002
        """Give (n, dim) vectors of n queries."""
        return self._queries.recall(sentences)

    def encode_document(self, sentences: Any, /, *, batch_size: int = 32) -> npt.NDArray[np.float32]:  # noqa: ARG002
        """Give (n, dim) vectors of n documents."""
        return self._documents.recall(sentences)


class _Memory:
    def __init__(self, encode: Callable[..., Any]) -> None:
        self._encode = encode
        self._known: dict[str, npt.NDArray[np.float32]] = {}

    def recall(self, texts: list[str]) -> npt.NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, vectors(self._encode, new), strict=True))
        return np.stack([self._known[text] for text in texts])
