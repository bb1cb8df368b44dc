"""Divide the texts of a corpus into shards, one source after the other."""

from collections.abc import Iterator
from itertools import islice

from edgeembed.corpus.inputs import TextSource

TEXTS_PER_SHARD = 16_384
"""About a second of a GPU's work, or a minute of a core's: little is lost with a shard."""


def source_shards(source: TextSource, number: int, texts_per_shard: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the shards of a source, one in memory at a time.

    Runs of white space are replaced by single spaces, and blank texts are skipped.

    Args:
        source: The source.
        number: Its number in the corpus.
        texts_per_shard: The number of texts in each shard but the last.

    Yields:
        The shard's name and its texts.
    """
    cleaned = (" ".join(text.split()) for text in source.texts())
    texts = (text for text in cleaned if text)
    count = 0
    while shard := list(islice(texts, texts_per_shard)):
        yield f"{number:05d}-{count:06d}", shard
        count += 1
