"""Files in object storage and behind other URLs that fsspec reads, with what a corpus needs of pathlib's interface."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeAlias, cast

from edgeembed_runtime.errors import InputError, one_line

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")


def is_url(name: str) -> bool:
    """Return whether a name is a URL, such as `s3://bucket/folder`, rather than a path."""
    return _URL.match(name) is not None


class RemotePath(os.PathLike[str]):
    """A file or folder at a URL of fsspec: `s3://`, `gs://`, `abfs://`, `hf://`, `https://`, `zip://a.txt::s3://...`.

    Credentials are those that the file system's package finds, for example in the environment.

    Args:
        url: The URL.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def __fspath__(self) -> str:
        return self._url

    def __str__(self) -> str:
        """Return the URL."""
        return self._url

    @property
    def suffix(self) -> str:
        """The ending of the file's name."""
        return PurePosixPath(self._resolved[1]).suffix

    @property
    def stem(self) -> str:
        """The file's name without its ending."""
        return PurePosixPath(self._resolved[1]).stem

    @property
    def name(self) -> str:
        """The file's name."""
        return PurePosixPath(self._resolved[1]).name

    def exists(self) -> bool:
        """Return whether there is a file or a folder.

        Raises:
            InputError: If that cannot be found out: no package for this kind of URL, no permission, no connection.
        """
        return self._type() is not None

    def is_dir(self) -> bool:
        """Return whether there is a folder; errors are those of `exists`."""
        return self._type() == "directory"

    def is_file(self) -> bool:
        """Return whether there is a file; errors are those of `exists`."""
        return self._type() == "file"

    def files_below(self) -> list[RemotePath]:
        """Return the files of a folder and of its subfolders; errors are those of `exists`."""
        system, path = self._resolved
        chained = self._url.split("::")[1:]
        with remote_errors(self):
            return [RemotePath("::".join([system.unstrip_protocol(file), *chained])) for file in system.find(path)]

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open the file for reading.

        Raises:
            InputError: If it cannot be opened.
        """
        system, path = self._resolved
        with remote_errors(self):
            return cast("BinaryIO", system.open(path, mode))

    def _type(self) -> str | None:
        system, path = self._resolved
        with remote_errors(self):
            try:
                return str(system.info(path)["type"])
            except FileNotFoundError:
                return None

    @cached_property  # that of a zip closes it when it is collected
    def _resolved(self) -> tuple[Any, str]:
        """The file system, and the path in it."""
        from fsspec.core import url_to_fs

        with remote_errors(self):
            system, path = url_to_fs(self._url)
        return system, path


AnyPath: TypeAlias = Path | RemotePath


def to_path(name: str) -> AnyPath:
    """Return the path of a name, or the remote path of a URL."""
    return RemotePath(name) if is_url(name) else Path(name)


@contextmanager
def remote_errors(path: AnyPath) -> Iterator[None]:
    """Convert an error about a remote path into an InputError; let one about a local path pass."""
    try:
        yield
    except InputError:
        raise
    except ImportError as error:  # "Install s3fs to access S3"
        raise InputError(f"{path} needs a package that is not installed: {one_line(str(error))}") from error
    except Exception as error:  # each file system has errors of its own
        if isinstance(path, Path) or isinstance(error, FileNotFoundError):
            raise
        raise InputError(
            f"{path} cannot be read: {type(error).__name__}: {one_line(str(error))[:200]}; expected a URL that this "
            "machine can reach with its credentials"
        ) from error
