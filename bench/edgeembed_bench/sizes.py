"""Size of a subject on disk and as a compressed download."""

import hashlib
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeembed_runtime import Bundle
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import MANIFEST

from edgeembed_bench.subjects import Subject

_CHUNK_BYTES = 1 << 20
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "sentencepiece.bpe.model", "spiece.model")


@dataclass(frozen=True)
class SizedFile:
    """One file that a subject needs to run.

    Attributes:
        name: Path relative to the subject's folder.
        size_bytes: Size on disk in bytes.
        download_bytes: Size in bytes compressed with deflate, as in a wheel or over HTTP.
        sha256: SHA-256 of the content, in hexadecimal.
    """

    name: str
    size_bytes: int
    download_bytes: int
    sha256: str


@dataclass(frozen=True)
class Size:
    """The files that a subject needs to run: weights, tokenizer and manifest.

    Attributes:
        files: The files; empty if unknown.
        reason: Why the files are unknown; None if they are known.
    """

    files: tuple[SizedFile, ...]
    reason: str | None = None

    @property
    def size_bytes(self) -> int | None:
        """Size on disk in bytes; None if unknown."""
        return sum(file.size_bytes for file in self.files) if self.files else None

    @property
    def download_bytes(self) -> int | None:
        """Size of a compressed download in bytes; None if unknown."""
        return sum(file.download_bytes for file in self.files) if self.files else None


def measure_size(subject: Subject) -> Size:
    """Measure the files that a subject needs to run.

    Args:
        subject: The subject.

    Returns:
        The files with their sizes; no files and a reason for a function or a model in fastembed's cache.

    Raises:
        InputError: If a required file is missing or unreadable.
    """
    reason = unknown_size_reason(subject)
    if reason is not None:
        return Size((), f"the size is unknown: {reason}")
    if subject.adapter == "bundle":
        return _bundle_size(subject.argument)
    folder = Path(subject.argument)
    files = {
        "sentence-transformer": _sentence_transformer_files,
        "sentence-transformer-onnx": _onnx_files,
        "onnx": _onnx_files,
        "fastembed": _onnx_files,
        "model2vec": _model2vec_files,
    }[subject.adapter](folder)
    return Size(tuple(_measure_file(file, folder) for file in files))


def unknown_size_reason(subject: Subject) -> str | None:
    """Return why the size of a subject cannot be known, one line; None if it can."""
    if subject.adapter in {"function", "nothing"}:
        return "it names no files"
    if subject.adapter != "bundle" and not Path(subject.argument).is_dir():
        return "it is given by its name, which names no files; pass the folder of its files"
    return None


def _bundle_size(path: str) -> Size:
    folder = Path(path) if path else Path(str(builtin_bundle()))
    bundle = Bundle.open(folder)
    # A graph above 2 GB keeps its weights in other files; their names begin with the graph's file name.
    prefixes = (bundle.model_file, "tokenizer.json")
    names = [file.name for file in bundle.files if file.name.startswith(prefixes)]
    return Size(tuple(_measure_file(folder / name, folder) for name in [*names, MANIFEST]))


def _sentence_transformer_files(folder: Path) -> list[Path]:
    modules = [folder]
    if (folder / "modules.json").is_file():
        paths = {str(module["path"]) for module in _read_json(folder / "modules.json")}
        modules = sorted(folder / path for path in paths | {""})
    weights = [file for module in modules for file in _weights(module)]
    if not weights:
        raise InputError(f"{folder} contains no weights; expected model.safetensors or pytorch_model.bin in it")
    return weights + [file for module in modules for file in _tokenizer(module)]


def _weights(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))


def _tokenizer(folder: Path) -> list[Path]:
    # Only the first is needed: tokenizer.json contains the others.
    return [folder / file for file in _TOKENIZER_FILES if (folder / file).is_file()][:1]


def _onnx_files(folder: Path) -> list[Path]:
    for subfolder in (folder, folder / "onnx"):
        graphs = [subfolder / name for name in ("model.onnx", "model_quantized.onnx") if (subfolder / name).is_file()]
        if graphs:
            return [*sorted(subfolder.glob(f"{graphs[0].name}*")), *_tokenizer(folder)]
    raise InputError(f"{folder} contains no model.onnx; expected one in it or in its folder onnx")


def _model2vec_files(folder: Path) -> list[Path]:
    return [*_weights(folder), *_tokenizer(folder)]


def _measure_file(file: Path, folder: Path) -> SizedFile:
    digest, deflate, size, compressed = hashlib.sha256(), zlib.compressobj(), 0, 0
    try:
        with file.open("rb") as content:
            while chunk := content.read(_CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
                compressed += len(deflate.compress(chunk))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}; expected a complete model folder") from error
    return SizedFile(file.relative_to(folder).as_posix(), size, compressed + len(deflate.flush()), digest.hexdigest())


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}; expected JSON") from error
