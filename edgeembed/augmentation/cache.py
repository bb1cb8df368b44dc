"""Variants of sentences, made once and kept on disk."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from edgeembed_runtime.storage.atomic import atomic_file

from edgeembed.augmentation.synonyms import Variant

_CHUNK = 512


class Method(Protocol):
    """A way to make variants.

    Attributes:
        name: What reports call it.
    """

    name: str

    @property
    def key(self) -> str:
        """What decides the variants, apart from the sentences."""
        ...

    def vary(self, sentences: Sequence[str]) -> list[list[Variant]]:
        """Give the variants of each sentence."""
        ...


def cached_variants(
    method: Method, sentences: Sequence[str], cache: Path, progress: Callable[[int], None] = lambda _done: None
) -> tuple[dict[str, list[Variant]], int]:
    """Make the variants of sentences, or find them made.

    A chunk of sentences of like length is one file, which appears whole or not at all: a run that was killed goes on
    where it stopped, and a file that is not whole is made again.

    Args:
        method: What makes them.
        sentences: Distinct sentences, in any order: the files are the same.
        cache: Folder that holds every cache; this one gets a folder of its own, keyed by method and text.
        progress: Called with the number of sentences done so far.

    Returns:
        The variants by sentence, and how many of the sentences were found on disk.

    Raises:
        InputError: If the cache cannot be written.
    """
    ordered = sorted(sentences, key=lambda sentence: (len(sentence), sentence))
    folder = cache / f"{method.name}-{_digest([method.key, *ordered])}"
    variants: dict[str, list[Variant]] = {}
    reused = 0
    for first in range(0, len(ordered), _CHUNK):
        chunk = ordered[first : first + _CHUNK]
        file = folder / f"{first:09}.json"
        made = _read(file, len(chunk))
        if made is None:
            made = method.vary(chunk)
            with atomic_file(file, force=True) as beside:
                beside.write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
        else:
            reused += len(chunk)
        variants.update(zip(chunk, made, strict=True))
        progress(len(variants))
    return variants, reused


def _read(file: Path, count: int) -> list[list[Variant]] | None:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        made = [[Variant(*each) for each in variants] for variants in content]
    except (OSError, ValueError, TypeError):  # absent, cut short, or something else
        return None
    return made if len(made) == count else None


def _digest(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8") + b"\n")
    return digest.hexdigest()[:16]
