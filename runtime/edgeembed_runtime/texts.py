"""What callers may give as texts."""

from collections.abc import Iterable, Mapping, Set
from typing import Any

from edgeembed_runtime.errors import InputError


def validate_texts(texts: Iterable[Any], what: str = "text") -> list[str]:
    """Give the texts as a list, each checked to be one.

    Args:
        texts: A list, tuple, array or generator of texts; not one text, and nothing without an order. Or of batches
            of texts, objects with a list under "text", as mteb's data loaders give them.
        what: What one is called in messages.

    Raises:
        InputError: If `texts` is no such thing, or an item is no text; it names the item's position and type.
    """
    if isinstance(texts, str | bytes | Mapping | Set) or not isinstance(texts, Iterable):
        raise InputError(f"the {what}s are {type(texts).__name__}, expected a list of str")
    try:
        listed = list(texts)
    except TypeError as error:  # numpy's arrays of no dimension, for one
        raise InputError(f"the {what}s are no list ({error}), expected a list of str") from error
    if listed and all(isinstance(batch, Mapping) and isinstance(batch.get("text"), list) for batch in listed):
        listed = [text for batch in listed for text in batch["text"]]
    for position, text in enumerate(listed):
        if not isinstance(text, str):
            raise InputError(f"{what} {position} is {type(text).__name__}, expected str; convert or remove it")
    return [str(text) for text in listed]
