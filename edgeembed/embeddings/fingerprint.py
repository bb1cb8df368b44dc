"""Fingerprints of models and texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.storage.files import sha256

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch.nn import Module

_MODEL_SUFFIXES = {".json", ".safetensors", ".bin", ".txt", ".model", ".spm"}


def model_fingerprint(model: Path | SentenceTransformer, *, normalize: bool = True, prompt: str = "") -> str:
    """Return a fingerprint of a model by its content, and of how it encodes.

    Args:
        model: A model folder, whose files are read, or a loaded model, whose weights and tokenizer are.
        normalize: Whether its embeddings are L2-normalized.
        prompt: The text that it reads before each text.

    Returns:
        SHA-256 in hexadecimal over weights, configuration and tokenizer.
    """
    digest = hashlib.sha256()
    if isinstance(model, Path):
        for file in sorted(model.rglob("*")):
            if file.is_file() and file.suffix in _MODEL_SUFFIXES:
                digest.update(f"{file.relative_to(model)}:{sha256(file)}\n".encode())
    else:
        _hash_loaded_model(model, digest.update)
    if not normalize:
        digest.update(b"of any length")
    if prompt:
        digest.update(f"prompt {prompt}".encode())
    return digest.hexdigest()


def combined_fingerprint(*parts: str) -> str:
    """Return one fingerprint, SHA-256 in hexadecimal, of several and of settings."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def weights_fingerprint(module: Module) -> str:
    """Return the SHA-256 of a module's weights in hexadecimal."""
    import torch

    digest = hashlib.sha256()
    for name, weight in module.state_dict().items():
        values = weight.detach().cpu().contiguous()
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}\n".encode())
        digest.update(values.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _hash_loaded_model(model: SentenceTransformer, update: Callable[[bytes], None]) -> None:
    update(f"{model}\n{model.max_seq_length}\n".encode())
    update(weights_fingerprint(model).encode())
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        update(repr(model.tokenizer).encode())
    else:  # without the padding and truncation of the last batch
        update(json.dumps({**json.loads(backend.to_str()), "padding": None, "truncation": None}).encode())


def text_hashes(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return a hash of each text, uint64 (texts,).

    Two of a billion texts have the same one with a probability of 3 %; a wrong embedding among so many does no harm.
    """
    digests = b"".join(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, np.uint64)


def text_fingerprint(texts: Sequence[str]) -> str:
    """Return a fingerprint of texts and their order, 16 hexadecimal digits."""
    return hashlib.sha256(text_hashes(texts).tobytes()).hexdigest()[:16]
