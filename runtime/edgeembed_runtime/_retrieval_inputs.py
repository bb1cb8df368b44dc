"""What rankers and indexes are given: an encoder, and queries and documents, as texts or as vectors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.characters import is_blank
from edgeembed_runtime.encode_options import TextPolicy
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.similarity import normalize

# Rows of embeddings that are checked at a time.
_BLOCK_ROWS = 4096
_EXPECTED_QUERY = "expected a text that says what to look for, with a letter, a digit or a symbol"


def validate_encoder(encoder: object) -> None:
    """Raise InputError if `encoder` is not an Encoder."""
    if not isinstance(encoder, Encoder):
        raise InputError(f"the encoder is {type(encoder).__name__}, expected an Encoder; load one with Encoder.load")


def query_vector(encoder: Encoder, query: Any) -> npt.NDArray[np.float32]:
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
    return normalize(encoder.encode_query([_validate_query(query)])[0])


def query_vectors(encoder: Encoder, queries: Any) -> tuple[npt.NDArray[np.float32], bool]:
    """Return the vectors of one query or of several.

    Args:
        encoder: Encodes the queries that are texts.
        queries: A text, a list of texts, or vectors, (dimension,) or (n, dimension).

    Returns:
        (n, dimension) float32, L2-normalized, and whether it was one query, not a list.

    Raises:
        InputError: If a query is neither of these, or is blank.
    """
    if isinstance(queries, str):
        return query_vector(encoder, queries)[None], True
    if isinstance(queries, list | tuple) and any(isinstance(query, str) for query in queries):
        return normalize(encoder.encode_query(_validate_queries(queries))), False
    dimension = encoder.dimension
    expected = f"a text, a list of texts, or vectors of {dimension} finite numbers"
    rows = _as_float32(queries, f"the query is {type(queries).__name__}, expected {expected}")
    if rows.size == 0 and rows.ndim in (1, 2) and len(rows) == 0:
        return np.empty((0, dimension), dtype=np.float32), False
    if rows.ndim != 2:
        return query_vector(encoder, rows)[None], True
    if rows.shape[1] != dimension:
        raise InputError(f"the queries have shape {rows.shape}, expected {expected}")
    if not np.isfinite(rows).all():
        raise InputError(f"a query contains NaN or infinity, expected {expected}")
    return normalize(rows), False


def known_query_vectors(encoder: Encoder, texts: list[str]) -> npt.NDArray[np.float32]:
    """Return the vectors of queries, (queries, dimension) float32, L2-normalized; zero for those that are unknown.

    Args:
        encoder: Encodes the queries.
        texts: The queries. The embedding of one of which the vocabulary knows almost no word does not depend on what it
            says.

    Raises:
        InputError: If a text is not valid Unicode.

    Warns:
        UnknownTextWarning: If the vocabulary knows almost no word of a query.
    """
    outputs = encoder._encode_texts(texts, encoder._prefix(None, None, "query"), TextPolicy(), show_progress=False)
    outputs.values[outputs.unknown] = 0
    return normalize(outputs.values)


def query_texts(queries: Any) -> tuple[list[str], bool]:
    """Return the texts of one query or of several, for a search by keywords.

    Args:
        queries: A text, or a list of texts.

    Returns:
        The texts, and whether it was one query, not a list.

    Raises:
        InputError: If a query is not a text, or is blank.
    """
    if isinstance(queries, str):
        return [_validate_query(queries)], True
    if not isinstance(queries, list | tuple):
        raise InputError(
            f"the query is {type(queries).__name__}, expected a text or a list of texts, which a search by keywords "
            "needs; pass the text, or search with method='embedding'"
        )
    return _validate_queries(queries), False


def document_vectors(
    encoder: Encoder, documents: Sequence[str], embeddings: Any, *, show_progress_bar: bool = False
) -> npt.NDArray[np.float32]:
    """Return the embeddings of documents, L2-normalized; arguments and errors are those of `document_embeddings`."""
    return normalize(document_embeddings(encoder, documents, embeddings, show_progress_bar=show_progress_bar))


def document_embeddings(
    encoder: Encoder, documents: Sequence[str], embeddings: Any, *, show_progress_bar: bool = False
) -> npt.NDArray[Any]:
    """Return the embeddings of documents, without a copy of those that the caller has.

    Args:
        encoder: Encodes the documents if `embeddings` is None.
        documents: The texts. One that is blank, or of which the vocabulary knows almost no word, gets a zero vector:
            its embedding does not depend on what it says.
        embeddings: (documents, dimension), of any norm, if the caller has them already; or None.
        show_progress_bar: Whether to show a counter on stderr while texts are encoded.

    Returns:
        (documents, dimension) numbers of any norm.

    Raises:
        InputError: If `embeddings` has another shape or type, or contains NaN or infinity.

    Warns:
        TruncationWarning: If a document is too long.
        UnknownTextWarning: If the vocabulary knows almost no word of a document.
    """
    if embeddings is None:
        outputs = encoder._encode_texts(
            list(documents), encoder.document_prompt, TextPolicy(), show_progress=show_progress_bar
        )
        encoded = outputs.values
        blank = np.fromiter(map(is_blank, documents), dtype=np.bool_, count=len(documents))
        encoded[outputs.unknown | blank] = 0
        return encoded
    shape = (len(documents), encoder.dimension)
    rows = _as_numbers(embeddings, f"the embeddings are {type(embeddings).__name__}, expected numbers of shape {shape}")
    if rows.size == 0 and not documents:
        return np.empty(shape, dtype=np.float32)
    if rows.shape != shape:
        raise InputError(f"the embeddings have shape {rows.shape}, expected {shape}: one embedding per document")
    for start in range(0, len(rows), _BLOCK_ROWS):
        finite = np.isfinite(_to_float32(rows[start : start + _BLOCK_ROWS])).all(axis=1)
        if not finite.all():
            position = start + int(np.argmin(finite))
            raise InputError(f"embedding {position} contains NaN or infinity, expected finite numbers")
    return rows


def _validate_query(query: str) -> str:
    if is_blank(query):
        raise InputError(f"the query is blank, {_EXPECTED_QUERY}")
    return str(query)


def _validate_queries(queries: Sequence[Any]) -> list[str]:
    for position, query in enumerate(queries):
        if not isinstance(query, str) or is_blank(query):
            given = "blank" if isinstance(query, str) else type(query).__name__
            raise InputError(f"query {position} is {given}, {_EXPECTED_QUERY}")
    return [str(query) for query in queries]


def _validate_query_vector(query: Any, dimension: int) -> npt.NDArray[np.float32]:
    expected = f"a text, or its vector of {dimension} finite numbers"
    vector = _as_float32(query, f"the query is {type(query).__name__}, expected {expected}")
    if vector.shape != (dimension,):
        raise InputError(f"the query has shape {vector.shape}, expected {expected}")
    if not np.isfinite(vector).all():
        raise InputError(f"the query contains NaN or infinity, expected {expected}")
    return vector


def _as_float32(values: Any, message: str) -> npt.NDArray[np.float32]:
    return _to_float32(_as_numbers(values, message))


def _as_numbers(values: Any, message: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{message} ({error})") from error
    if array.dtype.kind not in "fi":
        raise InputError(f"{message}, float32 for example, not {array.dtype}" if array.ndim else message)
    return array


def _to_float32(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Convert numbers to float32; those too large for float32 become infinite, which the callers reject."""
    with np.errstate(over="ignore"):
        converted: npt.NDArray[np.float32] = numbers.astype(np.float32, copy=False)
    return converted
