"""What the bench measures: a sentence encoder that can be opened with a number of threads."""

import contextlib
import functools
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeembed_runtime import Bundle, Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import MANIFEST

Encode = Callable[[str | list[str]], Any]
"""A text to a (dim,) float32 vector, a list of n texts to (n, dim)."""

_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "sentencepiece.bpe.model", "spiece.model")


@dataclass(frozen=True)
class Subject:
    """One encoder under measurement.

    Attributes:
        name: What the report calls it.
        kind: What runs it, such as "bundle, onnxruntime".
        size_bytes: Bytes on disk of the files that running it needs.
        size_of: Which files those are.
        parameters: Number of weights; None where nobody counted.
        open: Gives the encode callable for a number of threads, for the length of a `with` block.
    """

    name: str
    kind: str
    size_bytes: int
    size_of: str
    parameters: int | None
    open: Callable[[int], AbstractContextManager[Encode]]


def from_function(
    name: str, encode: Encode, *, size_bytes: int, parameters: int | None = None, kind: str = "function"
) -> Subject:
    """Make a subject of any callable; its threads are the caller's affair.

    Args:
        name: What the report calls it.
        encode: A text to (dim,), a list of n texts to (n, dim).
        size_bytes: Bytes on disk of what the callable needs.
        parameters: Number of weights, if known.
        kind: What runs it.

    Returns:
        The subject.
    """
    return Subject(name, kind, size_bytes, "as stated", parameters, lambda _: contextlib.nullcontext(encode))


def from_bundle(folder: Path, name: str | None = None) -> Subject:
    """Make a subject of a bundle, run by the runtime.

    Args:
        folder: The bundle.
        name: What the report calls it; the folder's name if absent.

    Returns:
        The subject; its size is that of the files that the runtime reads. Opening it with
        more than one thread raises InputError, because the runtime's encoder runs on one.

    Raises:
        BundleError: If the folder is not a bundle.
    """
    bundle = Bundle.open(folder)
    name = name or folder.resolve().name

    @contextlib.contextmanager
    def opened(threads: int) -> Iterator[Encode]:
        if threads != 1:
            raise InputError(f"{name} was to run on {threads} threads; a bundle's encoder runs on one: choose 1")
        # A warning per long text would be timed with it; the other encoders cut long texts silently.
        yield functools.partial(Encoder.load(folder).encode, on_truncate="ignore")

    read = tuple(file.size_bytes for file in bundle.files if file.name.startswith(_read_by_runtime(bundle)))
    size_bytes = sum(read) + (folder / MANIFEST).stat().st_size
    kind = f"bundle, onnxruntime, {bundle.precision}"
    return Subject(name, kind, size_bytes, f"model, tokenizer.json, {MANIFEST}", bundle.parameters, opened)


def _read_by_runtime(bundle: Bundle) -> tuple[str, str]:
    # A graph above 2 GB keeps its weights beside it, in files that begin with its name.
    return bundle.model_file, "tokenizer.json"


def from_sentence_transformer(model: Any, folder: Path, name: str | None = None) -> Subject:
    """Make a subject of a loaded sentence-transformers model, run by torch.

    Args:
        model: A `SentenceTransformer`.
        folder: Where it was loaded from.
        name: What the report calls it; the folder's name if absent.

    Returns:
        The subject; its size is that of the weights and the tokenizer. Opening it sets torch's number of
        threads, closing it sets the old number again.

    Raises:
        InputError: If the folder holds no weights.
    """
    import torch  # a bundle is measured without torch

    def encode(texts: str | list[str]) -> Any:
        return model.encode(texts, show_progress_bar=False)

    @contextlib.contextmanager
    def opened(threads: int) -> Iterator[Encode]:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            yield encode
        finally:
            torch.set_num_threads(before)

    parameters = sum(weight.numel() for weight in model.parameters())
    size_bytes = _bytes(_model_files(folder))
    kind = f"sentence-transformers, torch, {model.device}"
    return Subject(name or folder.resolve().name, kind, size_bytes, "weights, tokenizer", parameters, opened)


def _model_files(folder: Path) -> list[Path]:
    modules = [folder]
    if (folder / "modules.json").is_file():
        paths = {str(module["path"]) for module in _read_json(folder / "modules.json")}
        modules = sorted(folder / path for path in paths | {""})
    weights = [file for module in modules for file in _weights(module)]
    tokenizers = [file for module in modules for file in _tokenizer(module)]
    if not weights:
        raise InputError(f"{folder} holds no weights; expected model.safetensors or pytorch_model.bin in it")
    return weights + tokenizers


def _weights(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))


def _tokenizer(folder: Path) -> list[Path]:
    # A fast tokenizer needs tokenizer.json alone; the others are its sources.
    return [folder / file for file in _TOKENIZER_FILES if (folder / file).is_file()][:1]


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}; expected JSON that edgeembed wrote") from error


def _bytes(files: list[Path]) -> int:
    try:
        return sum(file.stat().st_size for file in files)
    except OSError as error:
        raise InputError(f"{error.filename} is missing; expected a complete model folder") from error
