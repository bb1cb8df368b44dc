"""A bundle: a folder that contains an encoder and its manifest, edgeembed.json; and what identifies its encoder."""

import json
import os
import stat
from typing import IO, NamedTuple

from edgeembed_runtime.errors import BundleError, VerificationError, one_line, short_repr
from edgeembed_runtime.manifest import CHECKSUM, MANIFEST, Manifest, manifest_difference
from edgeembed_runtime.storage.files import is_file, sha256_of
from edgeembed_runtime.storage.folder import DiskFolder, Folder

_REMEDY = "copy the bundle again or export it again"
# Folders of the cache of huggingface_hub.
_BLOBS = "blobs"
_SNAPSHOTS = "snapshots"


class Bundle(Manifest):
    """An exported encoder or classifier: its attributes are those of `Manifest`."""

    @classmethod
    def open(cls, path: str | os.PathLike[str] | Folder, *, verify: bool = False) -> "Bundle":
        """Open the bundle in a folder: validate its manifest, and check that its files are there.

        Args:
            path: The folder.
            verify: Whether to compare every file with its checksum, which reads them all.

        Raises:
            BundleError: If the folder is not a bundle that this version can open, or one of its files is missing, is
                not a regular file, or is a symbolic link that leads out of the folder.
            VerificationError: If `verify` is set and a file does not match its checksum.
        """
        folder = _folder(path)
        for name in (MANIFEST, CHECKSUM):
            _check_inside(folder, name)
        bundle = cls.from_folder(folder)
        for file in bundle.files:
            _check_inside(folder, file.name)
            if not is_file(folder / file.name):
                raise BundleError(f"{folder}: {file.name} is missing, expected a complete bundle; {_REMEDY}")
        if verify:
            bundle.verify()
        return bundle

    def __repr__(self) -> str:
        """Return the bundle's name and folder."""
        return f"<Bundle {self.name!r}, from {str(self.path)!r}>"

    def __getstate__(self) -> dict[str, object]:
        """Support pickling: another process may have another working folder."""
        folder = self.folder.absolute() if isinstance(self.folder, DiskFolder) else self.folder
        return {**vars(self), "folder": folder}

    @property
    def size_bytes(self) -> int:
        """The total size of the files in bytes, without edgeembed.json."""
        return sum(file.size_bytes for file in self.files)

    @property
    def fingerprint(self) -> str:
        """The SHA-256, in hexadecimal, of everything that embeddings depend on.

        That is the model, the tokenizer, the prompts and the maximum length; not the card or the scores.
        """
        files = {file.name: file.sha256 for file in self.files if file.name in (self.model_file, "tokenizer.json")}
        content = [files, self.max_seq_length, self.prompts, self.default_prompt_name]
        return sha256_of(json.dumps(content, sort_keys=True).encode())

    def has_file(self, name: str) -> bool:
        """Return whether the manifest lists a file of this name."""
        return any(file.name == name for file in self.files)

    def read(self, name: str, *, trusted: bool = False) -> bytes:
        """Read a file that the manifest lists.

        Args:
            name: Its path within the folder, with forward slashes.
            trusted: Whether to skip the checksum.

        Returns:
            The file's bytes.

        Raises:
            BundleError: If the manifest does not list the file; or if the file is missing, is not a regular file inside
                the folder, or has another size, which is checked before reading.
            VerificationError: If the file does not match its checksum.
        """
        record = next((file for file in self.files if file.name == name), None)
        if record is None:
            raise BundleError(f"{self.path} lists no file {name!r}, expected it in the manifest; {_REMEDY}")
        _check_inside(self.folder, name)
        if (difference := record.size_difference(self.folder)) is not None:
            raise BundleError(f"{self.path}: {difference}; {_REMEDY}")
        try:
            with open_regular(self.folder / name) as file:
                content = file.read(record.size_bytes)
        except OSError as error:
            raise BundleError(
                f"cannot read {self.folder / name}: {error.strerror}; expected a readable file"
            ) from error
        except MemoryError as error:
            raise BundleError(
                f"{self.folder / name} has {record.size_bytes} bytes, more than the available memory; free some memory"
            ) from error
        if not trusted and (difference := record.content_difference(sha256_of(content))) is not None:
            raise VerificationError(f"{self.path}: {difference}; {_REMEDY}")
        return content

    def check_sizes(self) -> None:
        """Check that every file exists and has the size in the manifest, without reading it.

        Raises:
            BundleError: If a file is missing or has another size.
        """
        for file in self.files:
            if (difference := file.size_difference(self.folder)) is not None:
                raise BundleError(f"{self.path}: {difference}; {_REMEDY}")

    def verify(self) -> None:
        """Compare every file with its checksum.

        Raises:
            VerificationError: If files are missing or differ; it lists each one with the difference.
        """
        if differences := self.differences():
            raise VerificationError(f"{self.path}: {'; '.join(differences)}; {_REMEDY}")

    def differences(self) -> tuple[str, ...]:
        """Return one line for each file that is missing or does not match its checksum."""
        differences = (manifest_difference(self.folder), *(file.difference(self.folder) for file in self.files))
        return tuple(difference for difference in differences if difference is not None)


class EncoderIdentity(NamedTuple):
    """The encoder that computed stored embeddings.

    Attributes:
        name: The name of its bundle.
        fingerprint: The fingerprint of its bundle.
        dimension: The dimension of its embeddings.
        space: The embedding space that its bundle states; None if it states none.
    """

    name: str
    fingerprint: str
    dimension: int
    space: str | None = None

    @classmethod
    def of(cls, bundle: Bundle) -> "EncoderIdentity":
        """Return the identity of a bundle's encoder."""
        return cls(bundle.name, bundle.fingerprint, bundle.dimension, bundle.space)

    def is_comparable(self, other: "EncoderIdentity") -> bool:
        """Return whether embeddings of both encoders may be compared.

        They may if both are the same encoder, or state the same embedding space and have the same dimension.
        """
        if self.fingerprint == other.fingerprint:
            return True
        return self.space is not None and (self.space, self.dimension) == (other.space, other.dimension)

    def __str__(self) -> str:
        """Return the name, the beginning of the fingerprint, and the space if there is one, for messages."""
        space = "" if self.space is None else f", space {one_line(self.space)}"
        return f"{short_repr(self.name)} ({one_line(self.fingerprint[:12])}{space})"


def _folder(path: str | os.PathLike[str] | Folder) -> Folder:
    if isinstance(path, str | os.PathLike) and isinstance(os.fspath(path), str):
        return DiskFolder(path)
    if isinstance(path, Folder):
        return path
    raise BundleError(f"{path!r} is {type(path).__name__}, expected the path of a bundle's folder")


def _check_inside(folder: Folder, name: str) -> None:
    """Check that no symbolic link makes a file of a bundle point outside the bundle's folder.

    A link within the folder is followed. So is one from a snapshot of huggingface_hub's cache
    (`snapshots/REVISION/NAME`) into the files of the same cache entry (`blobs/`), because that is how the cache
    stores every repository.

    Args:
        folder: The bundle.
        name: The file's path within the folder, with forward slashes; the file need not exist.

    Raises:
        BundleError: If a link points outside.
    """
    if not isinstance(folder, DiskFolder) or not _has_link(folder, name):
        return
    from pathlib import Path  # most bundles have no links, and an encoder starts without it

    root, target = Path(os.path.realpath(folder)), Path(os.path.realpath(folder / name))
    allowed = [root]
    if root.parent.name == _SNAPSHOTS:
        allowed.append(root.parent.parent / _BLOBS)
    if not any(target.is_relative_to(place) for place in allowed):
        raise BundleError(
            f"{folder}: {name} is a symbolic link that leads out of the folder, expected a file inside it; "
            "copy the bundle with its links resolved (cp -rL)"
        )


def open_regular(file: Folder) -> IO[bytes]:
    """Open a file for reading, unless it is a pipe, a socket or a device, on which reading might block forever.

    Args:
        file: The file.

    Returns:
        The opened file.

    Raises:
        OSError: If it cannot be opened, or is not a regular file.
    """
    if not isinstance(file, os.PathLike):
        return file.open("rb")
    # Without O_NONBLOCK, opening a pipe waits for its writer.
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(None, "it is not a regular file")
    return os.fdopen(descriptor, "rb")


def _has_link(folder: DiskFolder, name: str) -> bool:
    """Return whether the file, or a folder on the way to it inside the bundle, is a symbolic link."""
    path = folder
    for part in name.split("/"):
        path /= part
        if path.is_link():
            return True
    return False
