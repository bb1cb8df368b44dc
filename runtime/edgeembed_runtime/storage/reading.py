"""Files and folders to read from. Apart from `writing`, since an encoder writes none and starts faster without it."""

import os
from pathlib import Path
from typing import IO, Any, Literal, Protocol, runtime_checkable

_CHUNK_BYTES = 1 << 20


@runtime_checkable
class Folder(Protocol):
    """A folder or file to read from: a `Path`, or what stands for one inside a zip file."""

    @property
    def name(self) -> str:
        """Its name, without the folders above it."""

    def __truediv__(self, name: str, /) -> "Folder":
        """Give what lies in the folder under a name."""

    def is_dir(self) -> bool:
        """Whether it is a folder."""

    def is_file(self) -> bool:
        """Whether it is a file."""

    def open(self, mode: Literal["rb"], /) -> IO[Any]:
        """Open the file to read its bytes."""


def is_dir(path: Folder) -> bool:
    """Whether there is a folder; a path that the system cannot look up, being too long for it, leads to none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_file(path: Folder) -> bool:
    """Whether there is a file, likewise."""
    try:
        return path.is_file()
    except OSError:
        return False


def size_bytes(file: Folder) -> int:
    """Give the size of a file."""
    if isinstance(file, Path):
        return file.stat().st_size
    with file.open("rb") as opened:
        return int(opened.seek(0, os.SEEK_END))


def sha256(file: Folder) -> str:
    """Give the SHA-256 of a file's bytes, in hexadecimal."""
    import hashlib  # costs 3 MB for OpenSSL, which the encoder in the wheel, being trusted, does without

    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_of(content: bytes) -> str:
    """Give the SHA-256 of bytes, in hexadecimal."""
    import hashlib

    return hashlib.sha256(content).hexdigest()
