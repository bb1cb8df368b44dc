"""A bundle: a folder with an encoder, and edgeembed.json that says what is in it."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime.errors import BundleError, VerificationError
from edgeembed_runtime.manifest import Manifest, read_manifest

_AGAIN = "copy the bundle again or export it again"


@dataclass(frozen=True)
class Bundle(Manifest):
    """A manifest and the folder that it describes.

    Attributes:
        path: The folder.
    """

    path: Path

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = False) -> "Bundle":
        """Give the bundle in a folder, its manifest checked and its files present.

        Args:
            path: The folder.
            verify: Whether to compare every file's bytes with the manifest too; it reads them all.

        Raises:
            BundleError: If the folder is no bundle that this version can open.
            VerificationError: If `verify` is set and a file is not the one that was exported.
        """
        folder = Path(path)
        bundle = cls(path=folder, **vars(read_manifest(folder)))
        for file in bundle.files:
            if not (folder / file.name).is_file():
                raise BundleError(f"{folder}: {file.name} is missing, expected a whole bundle; {_AGAIN}")
        if verify:
            bundle.verify()
        return bundle

    @property
    def size_bytes(self) -> int:
        """The size of all its files together, edgeembed.json excepted."""
        return sum(file.size_bytes for file in self.files)

    @property
    def fingerprint(self) -> str:
        """The SHA-256, in hexadecimal, of all that decides a text's vector.

        That is the model, external weights included, the tokenizer, the prompts and the length limit; not the
        card or the scores.
        """
        files = {f.name: f.sha256 for f in self.files if f.name.startswith((self.model_file, "tokenizer.json"))}
        decisive = [files, self.max_seq_length, self.prompts, self.default_prompt_name]
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    def check_sizes(self) -> None:
        """Check that every file is present and has the size that was exported; this reads no file.

        Raises:
            BundleError: If one is not.
        """
        for file in self.files:
            if (difference := file.size_difference(self.path)) is not None:
                raise BundleError(f"{self.path}: {difference}; {_AGAIN}")

    def verify(self) -> None:
        """Check that every file is, byte for byte, the one that was exported.

        Raises:
            VerificationError: If a file is missing or differs; it names each, and what differs.
        """
        differences = [found for file in self.files if (found := file.difference(self.path)) is not None]
        if differences:
            raise VerificationError(f"{self.path}: {'; '.join(differences)}; {_AGAIN}")
