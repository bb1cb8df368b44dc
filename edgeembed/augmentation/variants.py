"""Variants of sentences, kept in a SQLite database: texts to texts, which a store of vectors does not fit."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from edgeembed_runtime.errors import InputError

from edgeembed.augmentation.synonyms import Variant

VARIANTS_FILE = "variants.db"

_CHUNK_SIZE = 512  # sentences of a transaction: the most that a killed run loses
_WAIT_S = 60.0  # for the transactions of other processes
_SCHEMA = "CREATE TABLE IF NOT EXISTS variants (method TEXT, sentence TEXT, made TEXT, PRIMARY KEY (method, sentence))"


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


def stored_variants(
    method: Method, sentences: Sequence[str], cache: Path, progress: Callable[[int], None] = lambda _done: None
) -> tuple[dict[str, list[Variant]], int]:
    """Return the variants of sentences, from the database where possible.

    Those of a chunk of sentences of similar length are written in one transaction: an interrupted run continues where
    it stopped, and several processes may share the database.

    Args:
        method: The method that generates variants.
        sentences: Distinct sentences; their order does not matter.
        cache: The folder of the database, which serves all methods and texts.
        progress: Called with the number of sentences done so far.

    Returns:
        The variants of each sentence, and the number of sentences whose variants were in the database.

    Raises:
        InputError: If the database cannot be read or written.
    """
    method_key = f"{method.name} {method.key}"
    with _open(cache / VARIANTS_FILE) as database:
        variants = {}
        for sentence in sentences:
            row = database.execute(
                "SELECT made FROM variants WHERE method = ? AND sentence = ?", (method_key, sentence)
            ).fetchone()
            if row is not None:
                variants[sentence] = [Variant(*each) for each in json.loads(row[0])]
        reused = len(variants)
        progress(reused)
        missing = sorted((each for each in sentences if each not in variants), key=lambda each: (len(each), each))
        for first in range(0, len(missing), _CHUNK_SIZE):
            chunk = missing[first : first + _CHUNK_SIZE]
            made = method.vary(chunk)
            rows = [
                (method_key, sentence, json.dumps(each, ensure_ascii=False))
                for sentence, each in zip(chunk, made, strict=True)
            ]
            database.execute("BEGIN IMMEDIATE")
            database.executemany("REPLACE INTO variants VALUES (?, ?, ?)", rows)
            database.execute("COMMIT")
            variants.update(zip(chunk, made, strict=True))
            progress(len(variants))
    return variants, reused


@contextmanager
def _open(file: Path) -> Iterator[sqlite3.Connection]:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(os.fspath(file), timeout=_WAIT_S, isolation_level=None)) as database:
            database.execute(_SCHEMA)
            yield database
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"cannot read or write the variants in {file}: {error}; expected a database of edgeembed in a writable "
            "folder with free space: remove the file, or choose another --cache"
        ) from error
