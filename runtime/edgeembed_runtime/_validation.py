"""Validation of arguments: texts, options, numbers and paths."""

import math
import os
from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeembed_runtime.errors import InputError, short_repr

if TYPE_CHECKING:
    from pathlib import Path


def validate_texts(texts: Iterable[Any], noun: str = "text") -> list[str]:
    """Return texts as a list of str.

    Args:
        texts: A list, tuple, array or generator of str; or mteb's batches, which are mappings with a list under "text".
            Not a single str, and not a set, which has no order.
        noun: The singular noun for messages, such as "document".

    Raises:
        InputError: If `texts` is something else, or an item is not a str; the message states the item's position and
            type.
    """
    if isinstance(texts, str | bytes | Mapping | Set) or not isinstance(texts, Iterable):
        raise InputError(f"the {noun}s are {type(texts).__name__}, expected a list of str")
    try:
        items = list(texts)
    except TypeError as error:  # for example a NumPy array without dimensions
        raise InputError(f"the {noun}s are not a list ({error}), expected a list of str") from error
    if items and all(isinstance(batch, Mapping) and isinstance(batch.get("text"), list) for batch in items):
        items = [text for batch in items for text in batch["text"]]
    for position, text in enumerate(items):
        if not isinstance(text, str):
            raise InputError(f"{noun} {position} is {type(text).__name__}, expected str; convert or remove it")
    return [str(text) for text in items]


def validate_pairs(pairs: Iterable[Any]) -> list[tuple[str, str]]:
    """Return pairs of texts as a list of tuples.

    Raises:
        InputError: If `pairs` is not a list of pairs of str; the message states the item's position.
    """
    if isinstance(pairs, str | bytes | Mapping | Set) or not isinstance(pairs, Iterable):
        raise InputError(f"the pairs are {type(pairs).__name__}, expected a tuple of two texts, or a list of them")
    found = []
    for position, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise InputError(f"pair {position} is {short_repr(pair)}, expected a tuple of two texts")
        found.append((str(pair[0]), str(pair[1])))
    return found


def is_positive_int(value: object) -> bool:
    """Return whether a value is an integer of at least 1; bool is not an integer here."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


def validate_top_k(top_k: int | None) -> None:
    """Raise InputError unless `top_k` is None or an integer of at least 1."""
    if top_k is not None and not is_positive_int(top_k):
        raise InputError(f"top_k is {top_k!r}, expected an integer of at least 1, or None for all")


def validate_threads(threads: int | None) -> None:
    """Raise InputError unless the number of threads is None or an integer of at least 1."""
    if threads is not None and not is_positive_int(threads):
        raise InputError(f"threads is {threads!r}, expected an integer of at least 1, or None for all cores")


def validate_number(name: str, value: float) -> None:
    """Raise InputError unless the value is a finite number of at least 0."""
    if not _is_finite_number(value) or value < 0:
        raise InputError(f"{name} is {short_repr(value)}, expected a finite number of at least 0")


def validate_min_score(min_score: float | None) -> None:
    """Raise InputError unless `min_score` is None or a finite number."""
    if min_score is not None and not _is_finite_number(min_score):
        raise InputError(f"min_score is {short_repr(min_score)}, expected a finite number, or None for no minimum")


def _is_finite_number(value: object) -> bool:
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that no float can represent
        return False


def validate_folder_path(path: str | os.PathLike[str], kind: str = "an index's folder") -> "Path":
    """Return the path of a folder.

    Args:
        path: The path.
        kind: What the folder is, for messages.

    Raises:
        InputError: If it is not a str or a path, or is empty.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputError(f"the path is {type(path).__name__}, expected the path of {kind} as a str or Path")
    if not os.fspath(path):
        raise InputError(f"the path is empty, expected the path of {kind}")
    from pathlib import Path  # an encoder starts without it, see storage/folder.py

    return Path(path)


def validate_column_names(names: Iterable[str]) -> list[str]:
    """Return the names of columns as a list.

    Raises:
        InputError: If it is not a list of str.
    """
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise InputError(f"the columns are {short_repr(names)}, expected a list of names")
    listed = list(names)
    for name in listed:
        if not isinstance(name, str):
            raise InputError(f"a column is called {short_repr(name)}, expected a str")
    return listed


def validate_batch_size(batch_size: object) -> None:
    """Raise InputError unless the batch size, which has no effect, is an integer of at least 1."""
    if not is_positive_int(batch_size):
        raise InputError(f"batch_size is {batch_size!r}, expected an integer of at least 1")
