"""Validation of arguments: texts, encoders, vectors of queries and documents, and counts."""

import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.similarity import normalize

if TYPE_CHECKING:
    from edgeembed_runtime.encoder import Encoder


def validate_texts(texts: Iterable[Any], what: str = "text") -> list[str]:
    """Return texts as a list of str.

    Args:
        texts: A list, tuple, array or generator of str; or mteb's batches, which are mappings with a list under "text".
            Not a single str, and not a set, which has no order.
        what: The singular noun for messages, such as "document".

    Raises:
        InputError: If `texts` is something else, or an item is not a str; the message states the item's position and
            type.
    """
    if isinstance(texts, str | bytes | Mapping | Set) or not isinstance(texts, Iterable):
        raise InputError(f"the {what}s are {type(texts).__name__}, expected a list of str")
    try:
        items = list(texts)
    except TypeError as error:  # for example a NumPy array without dimensions
        raise InputError(f"the {what}s are not a list ({error}), expected a list of str") from error
    if items and all(isinstance(batch, Mapping) and isinstance(batch.get("text"), list) for batch in items):
        items = [text for batch in items for text in batch["text"]]
    for position, text in enumerate(items):
        if not isinstance(text, str):
            raise InputError(f"{what} {position} is {type(text).__name__}, expected str; convert or remove it")
    return [str(text) for text in items]


def is_positive_int(value: object) -> bool:
    """Return whether a value is an integer of at least 1; bool is not an integer here."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


def validate_top_k(top_k: int | None) -> None:
    """Raise InputError unless `top_k` is None or an integer of at least 1."""
    if top_k is not None and not is_positive_int(top_k):
        raise InputError(f"top_k is {top_k!r}, expected an integer of at least 1, or None for all")


def validate_number(name: str, value: float) -> None:
    """Raise InputError unless the value is a finite number of at least 0."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= sys.float_info.max:
        raise InputError(f"{name} is {short_repr(value)}, expected a finite number of at least 0")


def validate_encoder(encoder: object) -> None:
    """Raise InputError if `encoder` is not an Encoder."""
    from edgeembed_runtime.encoder import Encoder  # which imports this module

    if not isinstance(encoder, Encoder):
        raise InputError(f"the encoder is {type(encoder).__name__}, expected an Encoder; load one with Encoder.load")


def query_vector(encoder: "Encoder", query: Any) -> npt.NDArray[np.float32]:
    """Return the vector of a query.

    Args:
        encoder: Encodes the query if it is a text.
        query: A text, or its vector, (dimension,).

    Returns:
        (dimension,) float32, L2-normalized; zeros stay zeros.

    Raises:
        InputError: If the query is neither of these, or is blank, because the embedding of "" is close to that of every
            short text.
    """
    if not isinstance(query, str):
        return normalize(_validate_query_vector(query, encoder.dimension))
    if not query.strip():
        raise InputError("the query is blank, expected a text that says what to look for")
    return normalize(encoder.encode_query([query])[0])


def document_vectors(
    encoder: "Encoder", documents: Sequence[str], embeddings: Any, *, show_progress_bar: bool = False
) -> npt.NDArray[np.float32]:
    """Return the embeddings of documents.

    Args:
        encoder: Encodes the documents if `embeddings` is None.
        documents: The texts. A blank one gets a zero vector, because its embedding is close to every short text's.
        embeddings: (documents, dimension), of any norm, if the caller has them already; or None.
        show_progress_bar: Whether to show a counter on stderr while texts are encoded.

    Returns:
        (documents, dimension) float32, L2-normalized; zeros stay zeros.

    Raises:
        InputError: If `embeddings` has another shape or type, or contains NaN or infinity.
    """
    if embeddings is None:
        encoded = normalize(encoder.encode_document(documents, show_progress_bar=show_progress_bar))
        encoded[[not document.strip() for document in documents]] = 0
        return encoded
    shape = (len(documents), encoder.dimension)
    rows = _as_float32(embeddings, f"the embeddings are {type(embeddings).__name__}, expected numbers of shape {shape}")
    if rows.size == 0 and not documents:
        return np.empty(shape, dtype=np.float32)
    if rows.shape != shape:
        raise InputError(f"the embeddings have shape {rows.shape}, expected {shape}: one embedding per document")
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise InputError(f"embedding {int(np.argmin(finite))} contains NaN or infinity, expected finite numbers")
    return normalize(rows)


def _validate_query_vector(query: Any, dimension: int) -> npt.NDArray[np.float32]:
    expected = f"a text, or its vector of {dimension} finite numbers"
    vector = _as_float32(query, f"the query is {type(query).__name__}, expected {expected}")
    if vector.shape != (dimension,):
        raise InputError(f"the query has shape {vector.shape}, expected {expected}")
    if not np.isfinite(vector).all():
        raise InputError(f"the query contains NaN or infinity, expected {expected}")
    return vector


def _as_float32(values: Any, message: str) -> npt.NDArray[np.float32]:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{message} ({error})") from error
    if array.dtype.kind not in "fi":
        raise InputError(f"{message}, float32 for example, not {array.dtype}" if array.ndim else message)
    with np.errstate(over="ignore"):  # values too large for float32 become infinite, which the callers reject
        converted: npt.NDArray[np.float32] = array.astype(np.float32, copy=False)
    return converted
