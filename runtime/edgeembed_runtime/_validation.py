"""Vectors of queries and documents, from the encoder or from a caller who has them already."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.similarity import unit


def validate_encoder(encoder: object) -> None:
    """Check that an encoder was given.

    Raises:
        InputError: If it is something else.
    """
    if not isinstance(encoder, Encoder):
        raise InputError(f"the encoder is {type(encoder).__name__}, expected an Encoder; load one with Encoder.load")


def query_vector(encoder: Encoder, query: Any) -> npt.NDArray[np.float32]:
    """Return the vector of a query.

    Args:
        encoder: Encodes the query if it is a text.
        query: A text, or its vector: (dimension,) numbers.

    Returns:
        (dimension,) float32, L2-normalized; zeros stay zeros.

    Raises:
        InputError: If the query is neither, or is blank: an encoder gives "" a vector that is near every short text.
    """
    if not isinstance(query, str):
        return unit(_given_query(query, encoder.dimension))
    if not query.strip():
        raise InputError("the query is blank, expected a text that says what is looked for")
    return unit(encoder.encode_query([query])[0])


def document_vectors(
    encoder: Encoder, documents: Sequence[str], vectors: Any, *, show_progress_bar: bool = False
) -> npt.NDArray[np.float32]:
    """Give the vectors of documents.

    Args:
        encoder: What gives them, if they were not given.
        documents: The texts. A blank one, of which an encoder makes a vector near everything short, is near nothing.
        vectors: (documents, dimension) numbers of any length, which are then not computed; or None.
        show_progress_bar: Whether to count on stderr while texts are encoded.

    Returns:
        (documents, dimension) float32, of unit length; zeros stay zeros.

    Raises:
        InputError: If `vectors` has another shape or type, or holds what is not finite.
    """
    if vectors is None:
        encoded = unit(encoder.encode_document(documents, show_progress_bar=show_progress_bar))
        encoded[[not document.strip() for document in documents]] = 0
        return encoded
    shape = (len(documents), encoder.dimension)
    rows = _numbers(vectors, f"the vectors are {type(vectors).__name__}, expected numbers of the shape {shape}")
    if rows.size == 0 and not documents:
        return np.empty(shape, dtype=np.float32)
    if rows.shape != shape:
        raise InputError(f"the vectors have the shape {rows.shape}, expected {shape}: one vector a document")
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise InputError(f"vector {int(np.argmin(finite))} is not finite, expected numbers only; encode it again")
    return unit(rows)


def _given_query(query: Any, dimension: int) -> npt.NDArray[np.float32]:
    expected = f"a text, or its vector of {dimension} finite numbers"
    vector = _numbers(query, f"the query is {type(query).__name__}, expected {expected}")
    if vector.shape != (dimension,):
        raise InputError(f"the query has the shape {vector.shape}, expected {expected}")
    if not np.isfinite(vector).all():
        raise InputError(f"the query holds numbers that are not finite, expected {expected}")
    return vector


def _numbers(given: Any, message: str) -> npt.NDArray[Any]:
    try:
        numbers = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{message} ({error})") from error
    if numbers.dtype.kind not in "fi":
        raise InputError(f"{message}, float32 for example, not {numbers.dtype}" if numbers.ndim else message)
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is refused as that
        rows: npt.NDArray[np.float32] = numbers.astype(np.float32, copy=False)
    return rows
