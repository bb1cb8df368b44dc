"""Folders that may be replaced because all that is in them is this project's."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.checksums import FileRecord
from edgeembed_runtime.storage.json_fields import JsonFields

_MOST_NAMED = 3


@dataclass(frozen=True)
class FolderKind:
    """A kind of folder that this project writes: its manifest lists every other file in it.

    Attributes:
        manifest: The manifest's file name. It is a JSON object; its field `files` is a list of `FileRecord`s.
        fields: Further fields by which such a manifest is told from another file of that name.
        unlisted: Names of files that belong to the folder although the manifest does not list them.
    """

    manifest: str
    fields: tuple[str, ...]
    unlisted: tuple[str, ...] = ()

    def records(self, folder: Path) -> list[dict[str, str | int]]:
        """Return what the manifest's `files` is to hold for all that is in a folder now, sorted by name."""
        names = sorted(name for name in _file_names(folder) if name not in (self.manifest, *self.unlisted))
        return [FileRecord.of(folder, name).to_json() for name in names]

    def write_manifest(self, folder: Path, content: Mapping[str, Any]) -> None:
        """Write the manifest of a folder that holds all its other files by now.

        Args:
            folder: The folder.
            content: What the manifest says beside `files`.

        Raises:
            OSError: If it cannot be written.
        """
        manifest = {**content, "files": self.records(folder)}
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        (folder / self.manifest).write_text(text, encoding="utf-8")

    def obstacle(self, folder: Path) -> str | None:
        """Return why a folder must not be replaced, as a predicate ("holds no index.json"), or None if it may be.

        An empty folder may be replaced; another one if its manifest can be read and lists every file in it.
        """
        try:
            if not any(folder.iterdir()):
                return None
            if not (folder / self.manifest).is_file():
                return self._without_manifest(folder)
            listed = self._listed(folder)
            foreign = list(islice((name for name in _file_names(folder) if name not in listed), _MOST_NAMED + 1))
        except OSError as error:
            return f"cannot be read ({error.strerror})"
        except InputError:
            return f"holds a file {self.manifest} that edgeembed did not write or that is damaged"
        return f"holds {_named(foreign)}, which its {self.manifest} does not list" if foreign else None

    def _without_manifest(self, folder: Path) -> str:
        found = list(islice(_file_names(folder), _MOST_NAMED + 1))
        return f"holds no {self.manifest}" + (f" but {_named(found)}" if found else "")

    def _listed(self, folder: Path) -> set[str]:
        fields = JsonFields.read(folder / self.manifest)
        names = {FileRecord.parse(each).name for each in fields.children("files")}
        if missing := [name for name in self.fields if name not in fields]:
            raise fields.refuse(missing[0], "a value")
        if not names:
            raise fields.refuse("files", "at least one")
        return {*names, self.manifest, *self.unlisted}


def _file_names(folder: Path, prefix: str = "") -> Iterator[str]:
    """Yield the relative path, with forward slashes, of all that is no folder, in order; links are not followed."""
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            yield from _file_names(folder / entry.name, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}"


def _named(names: list[str]) -> str:
    shown = ", ".join(name if name.isprintable() else repr(name) for name in names[:_MOST_NAMED])
    return shown + (" and more" if len(names) > _MOST_NAMED else "")
