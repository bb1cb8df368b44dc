"""Encode documents as the embeddings of their passages."""

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._retrieval_inputs import document_embeddings
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.index.passages import PassageSettings, PassageSplitter
from edgeembed_runtime.index.rows import PASSAGE_DTYPE, EncodedPassages


def encode_passages(
    encoder: Encoder,
    texts: list[str],
    settings: PassageSettings | None,
    embeddings: npt.ArrayLike | None,
    *,
    show_progress_bar: bool,
) -> EncodedPassages:
    """Return the passages of documents with their embeddings.

    Args:
        encoder: Encodes the passages if `embeddings` is None.
        texts: The texts of the documents. A blank one gets a zero vector.
        settings: How long texts are split; None means that each text is one passage.
        embeddings: (documents, dimension), of any norm, if they are known already: each text is then one passage.
        show_progress_bar: Whether to show a counter on stderr while passages are encoded.

    Raises:
        InputError: If `embeddings` has another shape or type or is not finite, or the encoder cannot encode passages of
            the size that the settings state.
    """
    spans = _whole(texts)
    parts = texts
    if settings is not None and embeddings is None:
        spans = _split(PassageSplitter(encoder, settings), texts)
        parts = [texts[document][start:end] for document, start, end in spans.tolist()]
    return EncodedPassages(document_embeddings(encoder, parts, embeddings, show_progress_bar=show_progress_bar), spans)


def _whole(texts: list[str]) -> npt.NDArray[np.int32]:
    """Return the spans of one passage per text, (texts, 3)."""
    spans = np.zeros((len(texts), 3), dtype=PASSAGE_DTYPE)
    spans[:, 0] = np.arange(len(texts))
    spans[:, 2] = np.fromiter(map(len, texts), dtype=PASSAGE_DTYPE, count=len(texts))
    return spans


def _split(splitter: PassageSplitter, texts: list[str]) -> npt.NDArray[np.int32]:
    """Return the spans of all passages, (passages, 3)."""
    spans = [
        (document, start, end)
        for document, text in enumerate(texts)
        for start, end in splitter.split(text) or [(0, len(text))]  # a blank text has no passages, however long
    ]
    return np.array(spans, dtype=PASSAGE_DTYPE).reshape(-1, 3)
