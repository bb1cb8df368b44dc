"""The manifest of a store of embeddings: Parquet files of texts and their vectors, as `edgeembed encode` writes them.

manifest.json          the encoder; name, rows and checksum of each shard
shards/NAME.parquet    texts, their hashes and their vectors
"""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.storage.json_fields import JsonFields

STORE_MANIFEST = "manifest.json"
SHARDS_FOLDER = "shards"
_SCHEMA_VERSION = 1

VectorType = Literal["float16", "float32"]


@dataclass(frozen=True)
class EncodedBy:
    """The encoder that the vectors of a store are from.

    Attributes:
        name: Its name or folder, as it was given.
        fingerprint: Its fingerprint: that of the bundle, or for another model that of its files; normalization and
            prompt count.
        dimension: The dimension of a vector.
        normalized: Whether the vectors are L2-normalized.
        precision: The precision that the model computed in: `fp32`, `bf16`, or a bundle's.
        space: The name of its embedding space; None if its bundle states none.
        prompt: The text that it read before each text; empty for none.
    """

    name: str
    fingerprint: str
    dimension: int
    normalized: bool
    precision: str
    space: str | None
    prompt: str

    @property
    def identity(self) -> EncoderIdentity:
        """What tells whether the vectors may be compared with those of another encoder."""
        return EncoderIdentity(self.name, self.fingerprint, self.dimension, self.space)

    @property
    def key(self) -> str:
        """A name for files of its vectors."""
        return f"{self.fingerprint[:16]}-{self.precision}"

    def differences(self, other: "EncodedBy") -> str:
        """Return how another encoder differs, such as "dimension 32 instead of 256"; empty if only the names do."""
        return ", ".join(
            f"{field.name} {getattr(self, field.name)!r} instead of {getattr(other, field.name)!r}"
            for field in dataclasses.fields(self)
            if field.name != "name" and getattr(self, field.name) != getattr(other, field.name)
        )


@dataclass(frozen=True)
class Shard:
    """A shard of a store.

    Attributes:
        name: Its name.
        rows: The number of texts in it.
        sha256: SHA-256 of its file, in hexadecimal.
    """

    name: str
    rows: int
    sha256: str

    def file(self, store: Path) -> Path:
        """Return the shard's file in a store's folder."""
        return store / SHARDS_FOLDER / f"{self.name}.parquet"


@dataclass(frozen=True)
class StoreManifest:
    """The content of manifest.json.

    Attributes:
        encoder: The encoder that the vectors are from.
        dtype: The type of the vectors' numbers.
        shards: The shards, in the order of their texts.
        is_complete: Whether the last run that added texts has ended.
    """

    encoder: EncodedBy
    dtype: VectorType = "float16"
    shards: tuple[Shard, ...] = ()
    is_complete: bool = False

    @classmethod
    def read(cls, store: Path) -> "StoreManifest | None":
        """Return the manifest in a folder, or None if there is none.

        Raises:
            InputError: If it cannot be read, is damaged or has another schema version.
        """
        if not (store / STORE_MANIFEST).is_file():
            return None
        fields = JsonFields.read(store / STORE_MANIFEST)
        if (version := fields.integer("schema_version")) != _SCHEMA_VERSION:
            raise InputError(f"{store} has schema version {version}, expected {_SCHEMA_VERSION}; encode the text again")
        encoder = fields.child("encoder")
        encoded_by = EncodedBy(
            name=encoder.string("name"),
            fingerprint=encoder.string("fingerprint"),
            dimension=encoder.integer("dimension", minimum=1),
            normalized=encoder.boolean("normalized"),
            precision=encoder.string("precision"),
            space=encoder.optional_string("space"),
            prompt=encoder.string("prompt"),
        )
        dtype: VectorType = "float32" if fields.string("dtype", ("float16", "float32")) == "float32" else "float16"
        shards = tuple(_parse_shard(each) for each in fields.children("shards"))
        return cls(encoded_by, dtype, shards, fields.boolean("is_complete"))

    def write(self, store: Path) -> None:
        """Write or replace the manifest in a folder.

        Raises:
            InputError: If it cannot be written.
        """
        content = {"schema_version": _SCHEMA_VERSION, **dataclasses.asdict(self)}
        with atomic_file(store / STORE_MANIFEST, force=True) as file:
            file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def complete_files(self, store: Path) -> dict[Path, int]:
        """Return the files of all shards, in order, with the number of texts in each.

        Raises:
            InputError: If not all shards are written, or one is missing.
        """
        if not self.is_complete:
            raise InputError(
                f"{store} is incomplete; expected all shards: run edgeembed encode again to write the rest"
            )
        files = {shard.file(store): shard.rows for shard in self.shards}
        missing = [file.name for file in files if not file.is_file()]
        if missing:
            raise InputError(f"{store} lacks {missing[0]}; expected all shards: run edgeembed encode again")
        return files


def _parse_shard(fields: JsonFields) -> Shard:
    name = fields.string("name")
    if Path(f"{name}.parquet").name != f"{name}.parquet":
        raise fields.field_error("name", "the name of a shard, which is not a path")
    return Shard(name, fields.integer("rows"), fields.string("sha256"))
