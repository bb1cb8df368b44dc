"""A store of embeddings: texts and their vectors in Parquet files, found by the hash of the text.

manifest.json          the encoder; name, rows and checksum of each shard (`edgeembed_runtime.store_manifest`)
shards/NAME.parquet    `text`, `text_hash` (uint64) and `embedding`, a list of float16 or float32

Shards are named by their texts and never change, so that several processes, also on several machines, may write some at
once. Only those that the manifest lists are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from edgeembed_runtime.errors import InputError, one_line
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.storage.file_lock import locked
from edgeembed_runtime.storage.files import sha256
from edgeembed_runtime.storage.temporary_folder import remove_stale
from edgeembed_runtime.store_manifest import (
    SHARDS_FOLDER,
    STORE_MANIFEST,
    EncodedBy,
    Shard,
    StoreManifest,
    VectorType,
)

from edgeembed.embeddings.fingerprint import text_fingerprint, text_hashes

Vectors = npt.NDArray[Any]
"""float16 or float32, (texts, dimension)."""

_TEXT, _HASH, _VECTOR = "text", "text_hash", "embedding"
_BATCH_ROWS = 4096


class EmbeddingStore:
    """A folder with the vectors of texts by one encoder. Instances can be pickled.

    Args:
        folder: The folder.
        manifest: Its manifest.

    Attributes:
        folder: The same.
        manifest: The manifest as this instance has last seen it; other processes may have added shards since.
    """

    def __init__(self, folder: Path, manifest: StoreManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._intact: set[Shard] = set()

    @classmethod
    def open(cls, folder: Path) -> EmbeddingStore:
        """Open a store to read it.

        Raises:
            InputError: If the folder is no store, or it is not complete.
        """
        manifest = StoreManifest.read(folder)
        if manifest is None:
            raise InputError(f"{folder} holds no {STORE_MANIFEST}; expected a folder that edgeembed encode wrote")
        manifest.complete_files(folder)
        return cls(folder, manifest)

    @classmethod
    def create(cls, folder: Path, encoder: EncodedBy, dtype: VectorType = "float16") -> EmbeddingStore:
        """Return a new store, or the one in the folder to add to. Damaged shards are removed from it.

        Raises:
            InputError: If the folder holds something else, or vectors of another encoder, or cannot be written.
        """
        with locked(folder / STORE_MANIFEST):
            existing = StoreManifest.read(folder)
            if existing is None:
                lock = {f".{STORE_MANIFEST}.lock"}
                if {file.name for file in folder.iterdir()} - lock:
                    raise InputError(f"{folder} exists and is not a store of embeddings; choose another path")
                existing = StoreManifest(encoder, dtype)
                existing.write(folder)
            if differences := existing.encoder.differences(encoder):
                raise InputError(
                    f"{folder} holds embeddings of another model ({differences}); choose another folder, or remove "
                    "this one"
                )
            store = cls(folder, existing)
            damaged = {shard for shard in existing.shards if not store._is_intact(shard)}
            if damaged:
                shards = tuple(shard for shard in existing.shards if shard not in damaged)
                store.manifest = replace(existing, shards=shards, is_complete=False)
                store.manifest.write(folder)
                for shard in damaged:
                    shard.file(folder).unlink(missing_ok=True)
        return store

    @property
    def encoder(self) -> EncodedBy:
        """The encoder."""
        return self.manifest.encoder

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(shard.rows for shard in self.manifest.shards)

    def check_visible(self) -> None:
        """Raise InputError if this machine does not see the folder, or sees another one at its path."""
        seen = StoreManifest.read(self.folder)
        if seen is None or seen.encoder.fingerprint != self.encoder.fingerprint:
            raise InputError(
                f"{self.folder} is missing, or another folder; expected one that all machines share, such as a "
                "network file system: run the command again with such a folder"
            )

    # --- adding

    def find_shard(self, prefix: str, texts: Sequence[str]) -> Shard | None:
        """Return the shard of these texts if it is on disk, listed or not; None otherwise."""
        file = Shard(_shard_name(prefix, texts), len(texts), "").file(self.folder)
        try:
            is_whole = file.is_file() and _open_parquet(file).metadata.num_rows == len(texts)
        except InputError:  # damaged
            return None
        return Shard(file.stem, len(texts), sha256(file)) if is_whole else None

    def write_shard(self, prefix: str, texts: Sequence[str], vectors: Vectors) -> Shard:
        """Write a shard, which `commit` is to list.

        Args:
            prefix: The beginning of the shard's name.
            texts: Its texts.
            vectors: Their vectors (texts, dimension).

        Raises:
            InputError: If it cannot be written.
        """
        element = pa.list_(pa.from_numpy_dtype(self.manifest.dtype), self.encoder.dimension)
        values = pa.array(np.ascontiguousarray(vectors, dtype=self.manifest.dtype).reshape(-1))
        table = pa.table(
            {
                _TEXT: pa.array(texts, pa.string()),
                _HASH: pa.array(text_hashes(texts)),
                _VECTOR: pa.FixedSizeListArray.from_arrays(values, type=element),
            }
        )
        name = _shard_name(prefix, texts)
        target = Shard(name, len(texts), "").file(self.folder)
        try:
            with atomic_file(target, force=True) as file, pa.OSFile(os.fsencode(file), "wb") as opened:
                # Vectors hardly compress, and no two are equal.
                pq.write_table(table, opened, compression={_TEXT: "zstd"}, use_dictionary=False)
        except OSError as error:
            raise InputError(
                f"cannot write {target}: {error.strerror or one_line(str(error))}; expected a writable folder with "
                "free space: run the command again to write the rest"
            ) from error
        return Shard(name, len(texts), sha256(target))

    def append(self, texts: Sequence[str], vectors: Vectors, *, is_complete: bool) -> None:
        """Write a shard and list it; arguments and errors are those of `write_shard` and `commit`."""
        prefix = f"{len(self.manifest.shards):05d}"
        shard = self.find_shard(prefix, texts) or self.write_shard(prefix, texts, vectors)
        self.commit([shard], is_complete=is_complete)

    def commit(self, shards: Sequence[Shard], *, is_complete: bool) -> None:
        """List shards in the manifest, after those that other processes have listed.

        Args:
            shards: Shards that are on disk, in the order of their texts.
            is_complete: Whether they are the last ones.

        Raises:
            InputError: If a shard is not there, or the manifest cannot be written.
        """
        for shard in shards:
            if not shard.file(self.folder).is_file():
                raise InputError(
                    f"{shard.file(self.folder)} was written, but is not there; expected a folder that all machines "
                    "share: run the command again with such a folder"
                )
        with locked(self.folder / STORE_MANIFEST):
            seen = StoreManifest.read(self.folder) or self.manifest
            listed = {shard.name: shard for shard in (*seen.shards, *shards)}
            manifest = replace(seen, shards=tuple(listed.values()), is_complete=is_complete)
            if manifest != seen:
                manifest.write(self.folder)
        self._set_manifest(manifest)
        self._intact.update(shards)

    def remove_unlisted(self) -> None:
        """Remove shards that an interrupted run left, and did not list. No other process may be adding any."""
        listed = {shard.file(self.folder) for shard in self.manifest.shards}
        for file in (self.folder / SHARDS_FOLDER).glob("*.parquet"):
            if file not in listed:
                file.unlink()
        for temporary in (self.folder / SHARDS_FOLDER).glob(".*.parquet.*.tmp"):  # of workers that were killed
            remove_stale(temporary.with_name(temporary.name[1:].removesuffix(".tmp").rpartition(".")[0]))

    # --- reading

    def find(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the row of each text, int64 (texts,); -1 for one that is not in the store."""
        hashes, rows = self._sorted_hashes
        wanted = text_hashes(texts)
        if not len(hashes):
            return np.full(len(texts), -1, dtype=np.int64)
        places = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
        return np.where(hashes[places] == wanted, rows[places], -1)

    def find_all(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the row of each text, int64 (texts,).

        Raises:
            InputError: If a text is not in the store.
        """
        rows = self.find(texts)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            raise InputError(
                f"{self.folder} lacks {len(missing):,} of {len(texts):,} sentences, the first is "
                f"{texts[missing[0]][:80]!r}; expected embeddings of the whole corpus: run edgeembed encode on it"
            )
        return rows

    def read(self, rows: npt.NDArray[np.int64], out: Vectors | None = None) -> Vectors:
        """Return the vectors of rows, with one shard in memory at a time.

        Args:
            rows: int64 (rows,).
            out: Where to write them (rows, dimension), such as a memory map; None for a new array.

        Raises:
            InputError: If a shard is damaged.
        """
        out = np.empty((len(rows), self.encoder.dimension), self.manifest.dtype) if out is None else out
        order = np.argsort(rows, kind="stable")
        ends = np.cumsum([shard.rows for shard in self.manifest.shards])
        parts = np.split(order, np.searchsorted(rows[order], ends))
        for shard, end, wanted in zip(self.manifest.shards, ends, parts, strict=False):
            if len(wanted):
                self._check_intact(shard)
                column = _open_parquet(shard.file(self.folder)).read([_VECTOR]).column(0).combine_chunks()
                out[wanted] = _as_matrix(column)[rows[wanted] - (end - shard.rows)]
        return out

    def texts(self) -> Iterator[str]:
        """Yield all texts, in the order of the rows.

        Raises:
            InputError: If a shard cannot be read.
        """
        for shard in self.manifest.shards:
            for batch in _open_parquet(shard.file(self.folder)).iter_batches(_BATCH_ROWS, columns=[_TEXT]):
                yield from batch.column(0).to_pylist()

    @cached_property
    def _sorted_hashes(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """The hashes of all texts, sorted, and their rows; of equal ones the first row comes first."""
        files = [shard.file(self.folder) for shard in self.manifest.shards]
        columns = [_open_parquet(file).read([_HASH]).column(0).to_numpy() for file in files]
        hashes = np.concatenate([np.empty(0, np.uint64), *columns])
        rows = np.argsort(hashes, kind="stable")
        return hashes[rows], rows

    def _set_manifest(self, manifest: StoreManifest) -> None:
        self.manifest = manifest
        self.__dict__.pop("_sorted_hashes", None)

    def _is_intact(self, shard: Shard) -> bool:
        if shard not in self._intact:
            file = shard.file(self.folder)
            if not file.is_file() or sha256(file) != shard.sha256:
                return False
            self._intact.add(shard)
        return True

    def _check_intact(self, shard: Shard) -> None:
        if not self._is_intact(shard):
            raise InputError(
                f"{shard.file(self.folder)} is missing or damaged: its SHA-256 is not that of {STORE_MANIFEST}; run "
                "edgeembed encode again to replace it"
            )


def _shard_name(prefix: str, texts: Sequence[str]) -> str:
    return f"{prefix}-{text_fingerprint(texts)}"


def _as_matrix(column: Any) -> Vectors:
    values: Vectors = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(column), -1)


def _open_parquet(file: Path) -> Any:
    try:
        # Opened as bytes, because pyarrow takes a name such as s3:x for a URL, and reads no name that is not UTF-8.
        return pq.ParquetFile(pa.OSFile(os.fsencode(file)))
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(
            f"{file} is not a readable shard: {one_line(str(error))}; remove it and run edgeembed encode again"
        ) from error
