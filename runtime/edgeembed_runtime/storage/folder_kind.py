"""Folders with a manifest that lists the size and SHA-256 of every file in them."""

import json
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.files import is_file, sha256, size_bytes
from edgeembed_runtime.storage.folder import Folder
from edgeembed_runtime.storage.json_fields import JsonFields

if TYPE_CHECKING:
    from pathlib import Path

_HEXADECIMAL = frozenset("0123456789abcdef")
_SHA256_DIGITS = 64
_MAX_SHOWN_NAMES = 3


class FileRecord(NamedTuple):
    """Name, size and checksum of one file in a folder.

    Attributes:
        name: The path within the folder, with forward slashes.
        size_bytes: The file's size in bytes.
        sha256: The SHA-256 of its content, in hexadecimal.
    """

    name: str
    size_bytes: int
    sha256: str

    @classmethod
    def from_file(cls, folder: "Path", name: str) -> "FileRecord":
        """Return the record of an existing file."""
        path = folder / name
        return cls(name, path.stat().st_size, sha256(path))

    @classmethod
    def parse(cls, fields: JsonFields) -> "FileRecord":
        """Return the record that `to_json` wrote.

        Raises:
            InputError: Or the error class of `fields`, if a field is wrong or the name leads out of the folder.
        """
        record = cls(fields.string("name"), fields.integer("size_bytes"), fields.string("sha256"))
        if not _is_safe_relative_path(record.name):
            raise fields.field_error("name", "a relative path that stays inside the folder")
        if len(record.sha256) != _SHA256_DIGITS or not _HEXADECIMAL.issuperset(record.sha256):
            raise fields.field_error("sha256", "64 hexadecimal digits in lower case")
        return record

    def to_json(self) -> dict[str, str | int]:
        """Return the record as JSON fields."""
        return {"name": self.name, "size_bytes": self.size_bytes, "sha256": self.sha256}

    def size_difference(self, folder: Folder) -> str | None:
        """Describe how the file's presence or size differs from the record; None if they match."""
        file = folder / self.name
        if not is_file(file):
            return f"{self.name} is missing"
        if (size := size_bytes(file)) != self.size_bytes:
            return f"{self.name} has {size} bytes, expected {self.size_bytes}"
        return None

    def content_difference(self, digest: str) -> str | None:
        """Describe how the SHA-256 of the file's content differs from the record; None if they match."""
        return None if digest == self.sha256 else f"{self.name} has SHA-256 {digest}, expected {self.sha256}"

    def difference(self, folder: Folder) -> str | None:
        """Describe how the file's presence, size or content differs from the record; None if they match."""
        if (difference := self.size_difference(folder)) is not None:
            return difference
        try:
            return self.content_difference(sha256(folder / self.name))
        except OSError as error:
            return f"{self.name} cannot be read ({error.strerror})"


class FolderKind(NamedTuple):
    """A kind of output folder. It may be replaced if its manifest lists every other file in it.

    Attributes:
        manifest: The manifest's file name. It is a JSON object; its field `files` is a list of `FileRecord`s.
        fields: Further fields that every manifest of this kind has.
        unlisted: Names of files that belong to the folder although the manifest does not list them.
        is_model: Whether it is written and read by libraries of models, which need a path that is UTF-8.
    """

    manifest: str
    fields: tuple[str, ...]
    unlisted: tuple[str, ...] = ()
    is_model: bool = False

    def records(self, folder: "Path") -> list[dict[str, str | int]]:
        """Return the manifest's `files` for the current content of a folder, sorted by name."""
        names = sorted(name for name in _file_names(folder) if name not in (self.manifest, *self.unlisted))
        return [FileRecord.from_file(folder, name).to_json() for name in names]

    def write_manifest(self, folder: "Path", content: Mapping[str, Any]) -> None:
        """Write the manifest of a folder that already holds all its other files.

        Args:
            folder: The folder.
            content: The fields of the manifest, except `files`.

        Raises:
            OSError: If the manifest cannot be written.
        """
        manifest = {**content, "files": self.records(folder)}
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        (folder / self.manifest).write_text(text, encoding="utf-8", newline="\n")

    def obstacle(self, folder: "Path") -> str | None:
        """Return why a folder must not be replaced, as a predicate ("holds no index.json"), or None if it may be.

        An empty folder may be replaced. Any other folder may be replaced if its manifest is readable and lists every
        file in it.
        """
        try:
            if not any(folder.iterdir()):
                return None
            if not (folder / self.manifest).is_file():
                return self._without_manifest(folder)
            listed = self._listed(folder)
            unknown = (name for name in _file_names(folder) if name not in listed)
            foreign = list(islice(unknown, _MAX_SHOWN_NAMES + 1))
        except OSError as error:
            return f"cannot be read ({error.strerror})"
        except InputError:
            return f"holds a file {self.manifest} that edgeembed did not write or that is damaged"
        return f"holds {_join(foreign)}, which its {self.manifest} does not list" if foreign else None

    def _without_manifest(self, folder: "Path") -> str:
        names = list(islice(_file_names(folder), _MAX_SHOWN_NAMES + 1))
        return f"holds no {self.manifest}" + (f" but {_join(names)}" if names else "")

    def _listed(self, folder: "Path") -> set[str]:
        """Return the names of the files that belong to the folder, according to its manifest."""
        fields = JsonFields.read(folder / self.manifest)
        names = {FileRecord.parse(each).name for each in fields.children("files")}
        if missing := [name for name in self.fields if name not in fields]:
            raise fields.field_error(missing[0], "a value")
        if not names:
            raise fields.field_error("files", "at least one")
        return {*names, self.manifest, *self.unlisted}


def _file_names(folder: "Path", prefix: str = "") -> Iterator[str]:
    """Yield the relative path, with forward slashes, of every file, in order; links are not followed."""
    with os.scandir(folder) as unsorted:
        entries = sorted(unsorted, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _file_names(folder / entry.name, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}"


def _is_safe_relative_path(name: str) -> bool:
    """Return whether a path is relative, printable and stays inside its folder, on Windows too."""
    is_plain = name.isprintable() and not any(character in name for character in "\\:")
    return is_plain and not any(part in {"", ".", ".."} for part in name.split("/"))


def _join(names: list[str]) -> str:
    shown = ", ".join(name if name.isprintable() else repr(name) for name in names[:_MAX_SHOWN_NAMES])
    return shown + (" and more" if len(names) > _MAX_SHOWN_NAMES else "")
