"""What a subject takes on disk, and what a download of it would."""

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

_CHUNK = 1 << 20
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "sentencepiece.bpe.model", "spiece.model")
_UNKNOWN = "a {} names no files; its size is not known"


@dataclass(frozen=True)
class SizedFile:
    """One file that a subject runs from.

    Attributes:
        name: Its path within the subject's folder.
        size_bytes: Bytes on disk.
        download_bytes: Bytes when compressed by deflate, as in a wheel or over HTTP.
        sha256: Hash of its content.
    """

    name: str
    size_bytes: int
    download_bytes: int
    sha256: str


@dataclass(frozen=True)
class Size:
    """The files that running a subject needs: weights, tokenizer, and what names them.

    Attributes:
        files: Them.
        reason: Why there are none; None if there are.
    """

    files: tuple[SizedFile, ...]
    reason: str | None = None

    @property
    def size_bytes(self) -> int | None:
        """Bytes on disk; None if not known."""
        return sum(file.size_bytes for file in self.files) if self.files else None

    @property
    def download_bytes(self) -> int | None:
        """Bytes of a compressed download; None if not known."""
        return sum(file.download_bytes for file in self.files) if self.files else None


def measure_size(subject: Subject) -> Size:
    """Measure the files that a subject runs from.

    Args:
        subject: What is measured.

    Returns:
        Its files; none, with the reason, for a function or for a model that fastembed keeps.

    Raises:
        InputError: If the subject's folder lacks a file that it needs.
    """
    if subject.adapter == "bundle":
        return _of_bundle(subject.argument)
    folder = Path(subject.argument)
    if subject.adapter in {"function", "nothing"} or not folder.is_dir():
        return Size((), _UNKNOWN.format(subject.adapter))
    files = {
        "sentence-transformer": _transformer_files,
        "sentence-transformer-onnx": _onnx_files,
        "onnx": _onnx_files,
        "fastembed": _onnx_files,
        "model2vec": _static_files,
    }[subject.adapter](folder)
    return Size(tuple(_sized(file, folder) for file in files))


def _of_bundle(path: str) -> Size:
    folder = Path(path) if path else Path(str(builtin_bundle()))
    bundle = Bundle.open(folder)
    # A graph above 2 GB keeps its weights beside it, in files that begin with its name.
    needed = (bundle.model_file, "tokenizer.json")
    names = [file.name for file in bundle.files if file.name.startswith(needed)]
    return Size(tuple(_sized(folder / name, folder) for name in [*names, MANIFEST]))


def _transformer_files(folder: Path) -> list[Path]:
    modules = [folder]
    if (folder / "modules.json").is_file():
        paths = {str(module["path"]) for module in _read_json(folder / "modules.json")}
        modules = sorted(folder / path for path in paths | {""})
    weights = [file for module in modules for file in _weights(module)]
    if not weights:
        raise InputError(f"{folder} holds no weights; expected model.safetensors or pytorch_model.bin in it")
    return weights + [file for module in modules for file in _tokenizer(module)]


def _weights(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))


def _tokenizer(folder: Path) -> list[Path]:
    # A fast tokenizer needs tokenizer.json alone; the others are its sources.
    return [folder / file for file in _TOKENIZER_FILES if (folder / file).is_file()][:1]


def _onnx_files(folder: Path) -> list[Path]:
    for place in (folder, folder / "onnx"):
        graphs = [place / name for name in ("model.onnx", "model_quantized.onnx") if (place / name).is_file()]
        if graphs:
            return [*sorted(place.glob(f"{graphs[0].name}*")), *_tokenizer(folder)]
    raise InputError(f"{folder} holds no model.onnx; expected one in it or in its folder onnx")


def _static_files(folder: Path) -> list[Path]:
    return [*_weights(folder), *_tokenizer(folder)]


def _sized(file: Path, folder: Path) -> SizedFile:
    digest, deflate, size, compressed = hashlib.sha256(), zlib.compressobj(), 0, 0
    try:
        with file.open("rb") as content:
            while chunk := content.read(_CHUNK):
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
