"""Embeddings of a corpus as a folder of Parquet files, the shards, which `edgeembed encode` writes."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from edgeembed_runtime.errors import InputError, one_line
from edgeembed_runtime.shards import SHARDS_MANIFEST, EncodedBy, ShardsManifest, shard_file
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.storage.temporary_folder import remove_stale

from edgeembed.teacher.cache import Embeddings

_DIGEST = b"texts_sha256"
_BATCH_ROWS = 4096


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
        manifest = ShardsManifest.read(folder)
        if manifest is None:
            raise InputError(f"{folder} holds no {SHARDS_MANIFEST}; expected a folder that edgeembed encode wrote")
        manifest.complete_files(folder)
        return cls(folder, manifest.model, manifest.counts)

    @classmethod
    def create(cls, folder: Path, model: EncodedBy) -> ShardFolder:
        """Return a new folder, or one of the same model whose missing shards are to be written.

        Raises:
            InputError: If the folder holds something else, or cannot be written.
        """
        existing = ShardsManifest.read(folder)
        if existing is None:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise InputError(f"{folder} exists and is not a folder of shards; choose another path")
            folder.mkdir(parents=True, exist_ok=True)
            ShardsManifest(model).write(folder)
            return cls(folder, model)
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
        return cls(folder, existing.model, existing.counts)

    def path(self, name: str) -> Path:
        """Return the file of a shard."""
        return shard_file(self.folder, name)

    def check_visible(self) -> None:
        """Raise InputError if this machine does not see the folder, or sees another one at its path."""
        seen = ShardsManifest.read(self.folder)
        if seen is None or seen.model.fingerprint != self.model.fingerprint:
            raise InputError(
                f"{self.folder} is missing, or another folder; expected one that all machines share, such as a "
                "network file system: run the command again with such a folder"
            )

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
            with atomic_file(self.path(name), force=True) as file, pa.OSFile(os.fsencode(file), "wb") as opened:
                # Embeddings hardly compress, and no two are equal.
                pq.write_table(table, opened, compression={"text": "zstd"}, use_dictionary=False)
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
        for temporary in self.folder.glob(".*.parquet.*.tmp"):  # of workers that were killed
            remove_stale(self.folder / temporary.name[1:].removesuffix(".tmp").rpartition(".")[0])
        found = {file.stem for file in self.folder.glob("*.parquet")}
        missing = sorted(counts.keys() - found)
        if missing:
            raise InputError(
                f"{self.path(missing[0])} was written, but is not there; expected a folder that all machines share: "
                "run the command again with such a folder"
            )
        extra = sorted(found.difference(counts))
        if extra:
            raise InputError(
                f"{self.path(extra[0])} is not part of the corpus; expected the corpus that the folder was begun with: "
                "choose another folder, or remove this one"
            )
        self.counts = counts
        ShardsManifest(self.model, counts).write(self.folder)

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
        # Opened as bytes, because pyarrow takes a name such as s3:x for a URL, and reads no name that is not UTF-8.
        return pq.ParquetFile(pa.OSFile(os.fsencode(file)))
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(
            f"{file} is not a readable shard: {one_line(str(error))}; remove it and run edgeembed encode again"
        ) from error


def _digest(texts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode() + b"\n")
    return digest.hexdigest()
