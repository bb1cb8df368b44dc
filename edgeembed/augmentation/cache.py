"""On-disk cache of the variants of sentences."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from edgeembed_runtime.storage.atomic import atomic_file

from edgeembed.augmentation.synonyms import Variant

_CHUNK_SIZE = 512


class Method(Protocol):
    """A method of augmentation.

    Attributes:
        name: The method's name in reports.
    """

    name: str

    @property
    def key(self) -> str:
        """The settings that determine the variants of a sentence, as text."""
        ...

    def vary(self, sentences: Sequence[str]) -> list[list[Variant]]:
        """Return the variants of each sentence."""
        ...


def cached_variants(
    method: Method, sentences: Sequence[str], cache: Path, progress: Callable[[int], None] = lambda _done: None
) -> tuple[dict[str, list[Variant]], int]:
    """Return the variants of sentences, from the cache where possible.

    Each file of the cache holds the variants of a chunk of sentences of similar length and is written atomically: an
    interrupted run continues where it stopped, and an invalid file is replaced.

    Args:
        method: The method that generates variants.
        sentences: Distinct sentences; their order does not matter.
        cache: The folder of all caches. Each method and text has a folder of its own in it.
        progress: Called with the number of sentences done so far.

    Returns:
        The variants of each sentence, and the number of sentences whose variants were in the cache.

    Raises:
        InputError: If the cache cannot be written.
    """
    ordered = sorted(sentences, key=lambda sentence: (len(sentence), sentence))
    folder = cache / f"{method.name}-{_digest([method.key, *ordered])}"
    variants: dict[str, list[Variant]] = {}
    reused = 0
    progress(0)
    for first in range(0, len(ordered), _CHUNK_SIZE):
        chunk = ordered[first : first + _CHUNK_SIZE]
        file = folder / f"{first:09}.json"
        chunk_variants = _read(file, len(chunk))
        if chunk_variants is None:
            chunk_variants = method.vary(chunk)
            with atomic_file(file, force=True) as temporary:
                temporary.write_text(json.dumps(chunk_variants, ensure_ascii=False), encoding="utf-8")
        else:
            reused += len(chunk)
        variants.update(zip(chunk, chunk_variants, strict=True))
        progress(len(variants))
    return variants, reused


def _read(file: Path, count: int) -> list[list[Variant]] | None:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        chunk_variants = [[Variant(*each) for each in variants] for variants in content]
    except (OSError, ValueError, TypeError):  # missing, truncated, or of another format
        return None
    return chunk_variants if len(chunk_variants) == count else None


def _digest(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8") + b"\n")
    return digest.hexdigest()[:16]
