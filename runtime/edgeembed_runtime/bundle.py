"""A bundle: a folder that contains an encoder and its manifest, edgeembed.json."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime.bundle_files import check_inside, open_regular
from edgeembed_runtime.errors import BundleError, VerificationError
from edgeembed_runtime.manifest import Manifest, manifest_difference, read_manifest
from edgeembed_runtime.storage.files import Folder, is_file, sha256_of

_REMEDY = "copy the bundle again or export it again"


@dataclass(frozen=True)
class Bundle(Manifest):
    """An exported encoder: the fields of its manifest, and its folder.

    Attributes:
        path: The folder; a `zipfile.Path` if the package is inside a zip file.
    """

    path: Folder

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
        bundle = cls(path=folder, **vars(read_manifest(folder)))
        for file in bundle.files:
            check_inside(folder, file.name)
            if not is_file(folder / file.name):
                raise BundleError(f"{folder}: {file.name} is missing, expected a complete bundle; {_REMEDY}")
        if verify:
            bundle.verify()
        return bundle

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
        check_inside(self.path, name)
        if (difference := record.size_difference(self.path)) is not None:
            raise BundleError(f"{self.path}: {difference}; {_REMEDY}")
        try:
            with open_regular(self.path / name) as file:
                content = file.read(record.size_bytes)
        except OSError as error:
            raise BundleError(f"cannot read {self.path / name}: {error.strerror}; expected a readable file") from error
        except MemoryError as error:
            raise BundleError(
                f"{self.path / name} has {record.size_bytes} bytes, more than the available memory; free some memory"
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
            if (difference := file.size_difference(self.path)) is not None:
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
        found = (manifest_difference(self.path), *(file.difference(self.path) for file in self.files))
        return tuple(difference for difference in found if difference is not None)


def _folder(path: str | os.PathLike[str] | Folder) -> Folder:
    if isinstance(path, str | os.PathLike):
        return Path(path)
    if isinstance(path, Folder):
        return path
    raise BundleError(f"{path!r} is {type(path).__name__}, expected the path of a bundle's folder")
