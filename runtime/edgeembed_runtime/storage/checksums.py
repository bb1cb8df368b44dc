"""What is written down about a file, so that another one in its place is noticed."""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from edgeembed_runtime.storage.json_fields import JsonFields
from edgeembed_runtime.storage.reading import Folder, is_file, sha256, size_bytes

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class FileRecord:
    """One file of a folder, as it was written.

    Attributes:
        name: Its path within the folder, with forward slashes.
        size_bytes: Its size.
        sha256: The SHA-256 of its bytes, in hexadecimal.
    """

    name: str
    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, folder: Path, name: str) -> "FileRecord":
        """Give the record of a file that exists."""
        path = folder / name
        return cls(name, path.stat().st_size, sha256(path))

    @classmethod
    def parse(cls, fields: JsonFields) -> "FileRecord":
        """Give the record that was written as JSON.

        Raises:
            InputError: Or the class of error that `fields` raises, if a field is wrong or the name leaves the
                folder.
        """
        record = cls(fields.text("name"), fields.whole("bytes"), fields.text("sha256"))
        if not _stays_inside(record.name):
            raise fields.refuse("name", "a relative path that stays inside the folder")
        if not _SHA256.fullmatch(record.sha256):
            raise fields.refuse("sha256", "64 hexadecimal digits in lower case")
        return record

    def to_json(self) -> dict[str, str | int]:
        """Give what `parse` reads."""
        return {"name": self.name, "bytes": self.size_bytes, "sha256": self.sha256}

    def size_difference(self, folder: Folder) -> str | None:
        """Say how the file's presence or size differs from the record, or give None if neither does."""
        file = folder / self.name
        if not is_file(file):
            return f"{self.name} is missing"
        if (size := size_bytes(file)) != self.size_bytes:
            return f"{self.name} has {size} bytes, expected {self.size_bytes}"
        return None

    def content_difference(self, digest: str) -> str | None:
        """Say how the SHA-256 of the file's bytes differs from the record, or give None if it does not."""
        return None if digest == self.sha256 else f"{self.name} has SHA-256 {digest}, expected {self.sha256}"

    def difference(self, folder: Folder) -> str | None:
        """Say how the file differs from the record, its content included, or give None if it does not."""
        if (difference := self.size_difference(folder)) is not None:
            return difference
        try:
            return self.content_difference(sha256(folder / self.name))
        except OSError as error:
            return f"{self.name} cannot be read ({error.strerror})"


def _stays_inside(name: str) -> bool:
    """Whether `name` is a plain relative path, on Windows too (no drive, no backslash), and fits in one line."""
    path = PurePosixPath(name)
    is_plain = bool(name) and name.isprintable() and not any(character in name for character in "\\:")
    return is_plain and not path.is_absolute() and ".." not in path.parts and str(path) == name and name != "."
