"""Hold out one text in eight."""

from collections.abc import Sequence

EVERY = 8
"""One text in so many is held out: enough to measure on, and most of the text is left."""


def one_in_eight(texts: Sequence[str], limit: int | None = None) -> tuple[list[str], list[str]]:
    """Return every eighth text, from the first on, and all others.

    Args:
        texts: The texts.
        limit: Maximum number of texts to hold out, the first ones; None sets no limit.
    """
    chosen = set(range(0, len(texts), EVERY)[:limit])
    return [texts[i] for i in sorted(chosen)], [text for i, text in enumerate(texts) if i not in chosen]
