"""The manifest of a folder of shards: Parquet files of texts and their embeddings, as `edgeembed encode` writes them.

shards.json            the model, and the number of texts in each shard once all of them are written
00000-000000.parquet   texts and embeddings: number of the source, and of the shard within it
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime.bundle import EncoderIdentity
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.storage.json_fields import JsonFields

SHARDS_MANIFEST = "shards.json"
_SCHEMA_VERSION = 2


@dataclass(frozen=True)
class EncodedBy:
    """The model that the embeddings of a folder of shards are from.

    Attributes:
        name: Its name or folder, as it was given.
        fingerprint: Its fingerprint: that of the bundle, or for another model that of its files.
        dimension: The dimension of an embedding.
        normalized: Whether the embeddings are L2-normalized.
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
        """What tells whether the embeddings may be compared with those of another encoder."""
        return EncoderIdentity(self.name, self.fingerprint, self.dimension, self.space)


@dataclass(frozen=True)
class ShardsManifest:
    """The content of shards.json.

    Attributes:
        model: The model that the embeddings are from.
        counts: The number of texts in each shard by name, in the order of the corpus; None if shards are missing.
    """

    model: EncodedBy
    counts: Mapping[str, int] | None = None

    @classmethod
    def read(cls, folder: Path) -> "ShardsManifest | None":
        """Return the manifest in a folder, or None if there is none.

        Raises:
            InputError: If it cannot be read, is damaged or has another schema version.
        """
        if not (folder / SHARDS_MANIFEST).is_file():
            return None
        fields = JsonFields.read(folder / SHARDS_MANIFEST)
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
            space=model.optional_string("space"),
            prompt=model.string("prompt"),
        )
        names = fields.nullable_object("texts")
        if names is None:
            return cls(encoded_by)
        if any(Path(f"{name}.parquet").name != f"{name}.parquet" for name in names):
            raise fields.field_error("texts", "the number of texts by the name of a shard, which is not a path")
        counts = fields.child("texts")
        return cls(encoded_by, {name: counts.integer(name) for name in names})

    def write(self, folder: Path) -> None:
        """Write or replace the manifest in a folder.

        Raises:
            InputError: If it cannot be written.
        """
        content = {
            "schema_version": _SCHEMA_VERSION,
            "model": dataclasses.asdict(self.model),
            "texts": None if self.counts is None else dict(self.counts),
        }
        with atomic_file(folder / SHARDS_MANIFEST, force=True) as file:
            file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def complete_files(self, folder: Path) -> dict[Path, int]:
        """Return the files of all shards, in the order of the corpus, with the number of texts in each.

        Raises:
            InputError: If not all shards are written, or one is missing.
        """
        if self.counts is None:
            raise InputError(
                f"{folder} is incomplete; expected all shards: run edgeembed encode again to write the rest"
            )
        files = {shard_file(folder, name): count for name, count in self.counts.items()}
        missing = [file.name for file in files if not file.is_file()]
        if missing:
            raise InputError(f"{folder} lacks {missing[0]}; expected all shards: run edgeembed encode again")
        return files


def shard_file(folder: Path, name: str) -> Path:
    """Return the file of a shard."""
    return folder / f"{name}.parquet"
