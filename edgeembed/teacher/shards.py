"""Embeddings of a corpus as a folder of Parquet files, the shards, which `edgeembed encode` writes.

shards.json            the model, and the number of texts in each shard once all of them are written
00000-000000.parquet   texts and embeddings: number of the source, and of the shard within it
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from edgeembed_runtime.errors import InputError, one_line
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.storage.json_fields import JsonFields

from edgeembed.teacher.cache import Embeddings

SHARDS_MANIFEST = "shards.json"
_SCHEMA_VERSION = 1
_DIGEST = b"texts_sha256"
_BATCH_ROWS = 4096


@dataclass(frozen=True)
class EncodedBy:
    """The model that the embeddings of a folder of shards are from.

    Attributes:
        name: Its name or folder, as it was given.
        fingerprint: Its fingerprint, see `model_fingerprint`; a bundle's own for a bundle.
        dimension: The dimension of an embedding.
        normalized: Whether the embeddings are L2-normalized.
        precision: The precision that the model computed in: `fp32`, `bf16`, or a bundle's.
    """

    name: str
    fingerprint: str
    dimension: int
    normalized: bool
    precision: str


class WrittenShard(NamedTuple):
    """A shard that is on disk.

    Attributes:
        name: Its name.
        texts: The number of texts in it.
        is_new: Whether it was written now, not by an earlier run.
    """

    name: str
    texts: int
    is_new: bool


class ShardFolder:
    """A folder of shards. Instances can be pickled, and several processes may write different shards.

    Args:
        folder: The folder.
        model: The model that the embeddings are from.
        counts: The number of texts in each shard by name; None if shards are missing.

    Attributes:
        folder: The folder.
        model: The model.
        counts: As above.
    """

    def __init__(self, folder: Path, model: EncodedBy, counts: Mapping[str, int] | None = None) -> None:
        self.folder = folder
        self.model = model
        self.counts = counts

    @classmethod
    def open(cls, folder: Path) -> ShardFolder:
        """Open a folder whose shards are complete.

        Raises:
            InputError: If it is not such a folder, or shards are missing.
        """
        shards = cls._read(folder)
        if shards is None:
            raise InputError(f"{folder} holds no {SHARDS_MANIFEST}; expected a folder that edgeembed encode wrote")
        if shards.counts is None:
            raise InputError(
                f"{folder} is incomplete; expected all shards: run edgeembed encode again to write the rest"
            )
        missing = [name for name in shards.counts if not shards.path(name).is_file()]
        if missing:
            raise InputError(f"{folder} lacks {missing[0]}; expected all shards: run edgeembed encode again")
        return shards

    @classmethod
    def create(cls, folder: Path, model: EncodedBy) -> ShardFolder:
        """Return a new folder, or one of the same model whose missing shards are to be written.

        Raises:
            InputError: If the folder holds something else, or cannot be written.
        """
        existing = cls._read(folder)
        if existing is None:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise InputError(f"{folder} exists and is not a folder of shards; choose another path")
            folder.mkdir(parents=True, exist_ok=True)
            new = cls(folder, model)
            new._write_manifest()
            return new
        differences = [
            f"{field.name} {getattr(existing.model, field.name)} instead of {getattr(model, field.name)}"
            for field in dataclasses.fields(EncodedBy)
            if field.name != "name" and getattr(existing.model, field.name) != getattr(model, field.name)
        ]
        if differences:
            raise InputError(
                f"{folder} holds shards of another model ({', '.join(differences)}); choose another folder, or remove "
                "this one"
            )
        return existing

    def path(self, name: str) -> Path:
        """Return the file of a shard."""
        return self.folder / f"{name}.parquet"

    def write_missing(
        self, name: str, texts: Sequence[str], encode: Callable[[Sequence[str]], Embeddings]
    ) -> WrittenShard:
        """Encode and write a shard, unless it is complete.

        Args:
            name: The shard's name.
            texts: Its texts.
            encode: Returns the embeddings of texts, float16 (texts, dimension).

        Raises:
            InputError: If the shard holds other texts, or cannot be read or written.
        """
        is_new = not self._holds(name, texts)
        if is_new:
            self._write(name, texts, encode(texts))
        return WrittenShard(name, len(texts), is_new)

    def _holds(self, name: str, texts: Sequence[str]) -> bool:
        if not self.path(name).is_file():
            return False
        found = (_open_parquet(self.path(name)).schema_arrow.metadata or {}).get(_DIGEST, b"").decode()
        if found != _digest(texts):
            raise InputError(
                f"{self.path(name)} holds other texts than the corpus; expected the corpus that the folder was begun "
                "with: choose another folder, or remove this one"
            )
        return True

    def _write(self, name: str, texts: Sequence[str], embeddings: Embeddings) -> None:
        element = pa.list_(pa.float16(), self.model.dimension)
        schema = pa.schema({"text": pa.string(), "embedding": element}, metadata={_DIGEST: _digest(texts)})
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.reshape(-1)), type=element)
        table = pa.Table.from_arrays([pa.array(texts, pa.string()), vectors], schema=schema)
        try:
            with atomic_file(self.path(name), force=True) as file:
                # Embeddings hardly compress, and no two are equal.
                pq.write_table(table, file, compression={"text": "zstd"}, use_dictionary=False)
        except OSError as error:
            raise InputError(
                f"cannot write {self.path(name)}: {error.strerror or one_line(str(error))}; expected a writable folder "
                "with free space: run the command again to write the rest"
            ) from error

    def finish(self, counts: Mapping[str, int]) -> None:
        """Record that all shards are written.

        Args:
            counts: The number of texts in each shard by name, in the order of the corpus.
        """
        extra = sorted({file.stem for file in self.folder.glob("*.parquet")}.difference(counts))
        if extra:
            raise InputError(
                f"{self.path(extra[0])} is not part of the corpus; expected the corpus that the folder was begun with: "
                "choose another folder, or remove this one"
            )
        self.counts = counts
        self._write_manifest()

    def texts(self) -> Iterator[str]:
        """Yield all texts in the order of the corpus.

        Raises:
            InputError: If a shard cannot be read.
        """
        for name in self.counts or ():
            for batch in _open_parquet(self.path(name)).iter_batches(_BATCH_ROWS, columns=["text"]):
                yield from batch.column(0).to_pylist()

    def batches(self) -> Iterator[tuple[list[str], Embeddings]]:
        """Yield texts and their embeddings, float16 (n, dimension), a few thousand at a time.

        Raises:
            InputError: If a shard cannot be read or is damaged.
        """
        for name in self.counts or ():
            for batch in _open_parquet(self.path(name)).iter_batches(_BATCH_ROWS):
                values = batch.column("embedding").flatten().to_numpy(zero_copy_only=False)
                yield batch.column("text").to_pylist(), values.reshape(batch.num_rows, self.model.dimension)

    @classmethod
    def _read(cls, folder: Path) -> ShardFolder | None:
        if not (folder / SHARDS_MANIFEST).is_file():
            return None
        fields = JsonFields.read(folder / SHARDS_MANIFEST, InputError)
        if (version := fields.integer("schema_version")) != _SCHEMA_VERSION:
            raise InputError(
                f"{folder} has schema version {version}, expected {_SCHEMA_VERSION}; encode the text again"
            )
        model = fields.child("model")
        encoded_by = EncodedBy(
            name=model.string("name"),
            fingerprint=model.string("fingerprint"),
            dimension=model.integer("dimension", minimum=1),
            normalized=model.boolean("normalized"),
            precision=model.string("precision"),
        )
        counts = fields.nullable_object("texts")
        return cls(folder, encoded_by, counts)

    def _write_manifest(self) -> None:
        content = {
            "schema_version": _SCHEMA_VERSION,
            "model": dataclasses.asdict(self.model),
            "texts": None if self.counts is None else dict(self.counts),
        }
        with atomic_file(self.folder / SHARDS_MANIFEST, force=True) as file:
            file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def select_embeddings(shards: ShardFolder, sentences: Sequence[str], selected: Embeddings) -> Embeddings:
    """Copy the embeddings of sentences from a folder of shards.

    Args:
        shards: The shards, complete.
        sentences: Distinct sentences.
        selected: float16 (sentences, dimension) to fill, in the order of the sentences; it may be memory-mapped.

    Returns:
        The filled array.

    Raises:
        InputError: If a sentence is not in the shards.
    """
    rows = {sentence: row for row, sentence in enumerate(sentences)}
    found = np.zeros(len(sentences), dtype=bool)
    for texts, embeddings in shards.batches():
        pairs = [(rows[text], position) for position, text in enumerate(texts) if text in rows]
        if pairs:
            targets, positions = (list(each) for each in zip(*pairs, strict=True))
            selected[targets] = embeddings[positions]
            found[targets] = True
    if not found.all():
        missing = np.flatnonzero(~found)
        raise InputError(
            f"{shards.folder} lacks {len(missing):,} of {len(sentences):,} sentences, the first is "
            f"{sentences[missing[0]][:80]!r}; expected shards of the whole corpus: run edgeembed encode on it"
        )
    return selected


def _open_parquet(file: Path) -> Any:
    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(
            f"{file} is not a readable shard: {one_line(str(error))}; remove it and run edgeembed encode again"
        ) from error


def _digest(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode() + b"\n")
    return digest.hexdigest()
