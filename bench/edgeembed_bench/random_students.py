"""Matrix students of random weights: what they cost is what trained ones cost."""

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from edgeembed_runtime import Bundle
from edgeembed_runtime.cmow.model_file import BACKWARD, CBOW, FORMAT, FORMAT_VERSION, FORWARD, HEAD
from edgeembed_runtime.cmow.safetensors import pack_tensors
from edgeembed_runtime.manifest import BUNDLE_FOLDER, MANIFEST
from edgeembed_runtime.storage.atomic import atomic_folder

Architecture = Literal["hybrid", "cbow"]

_SIDE = 20  # of a token's matrix, as in the CMOW paper; CBOW's vector is as long as a matrix has numbers
_MODEL = "model.safetensors"


def write_random_student(path: Path, architecture: Architecture, like: Bundle) -> None:
    """Write a bundle of random int8 tables, for the NumPy backend.

    Args:
        path: The bundle's folder; what is there is replaced.
        architecture: "hybrid" (matrices forward and backward, and vectors that are added up) or "cbow" (vectors of
            which the mean is taken), with a linear head after either.
        like: The bundle whose tokenizer, dimension and limit it takes.
    """
    tokenizer = like.read("tokenizer.json")
    model = pack_tensors(*_tensors(architecture, len(_vocabulary(tokenizer)), like.dimension))
    files = {_MODEL: model, "tokenizer.json": tokenizer}
    with atomic_folder(path, force=True, kind=BUNDLE_FOLDER) as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content)
        manifest = _manifest(architecture, like, files)
        (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def _tensors(
    architecture: Architecture, vocabulary: int, dimension: int
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, str]]:
    random = np.random.default_rng(0)
    matrices = _SIDE * _SIDE
    names = [FORWARD, BACKWARD, CBOW] if architecture == "hybrid" else [CBOW]
    tensors: dict[str, npt.NDArray[Any]] = {}
    for name in names:
        tensors[f"{name}.weight"] = random.integers(-127, 128, (vocabulary, matrices), dtype=np.int8)
        tensors[f"{name}.scale"] = np.full(vocabulary, 1e-3, dtype=np.float32)
    for name in {FORWARD, BACKWARD}.intersection(names):
        tensors[f"{name}.bias"] = np.eye(_SIDE, dtype=np.float32).ravel()
    tensors[f"{HEAD}.weight"] = random.standard_normal((dimension, matrices * len(names))).astype(np.float32)
    pooling = "sum" if architecture == "hybrid" else "mean"
    settings = {"format": FORMAT, "format_version": FORMAT_VERSION, "architecture": architecture}
    return tensors, settings | {"cbow_pooling": pooling}


def _vocabulary(tokenizer: bytes) -> dict[str, int]:
    vocabulary: dict[str, int] = json.loads(tokenizer)["model"]["vocab"]
    return vocabulary


def _manifest(architecture: str, like: Bundle, files: dict[str, bytes]) -> dict[str, Any]:
    shown = {
        "name": f"random-{architecture}",
        "backend": "numpy",
        "precision": "int8",
        "model_file": _MODEL,
        "recipe": None,
        "teacher": None,
        "quality": None,
        "parity": {"sentences": 1, "worst_cosine": 1.0, "mean_cosine": 1.0, "worst_sentences": []},
        "files": [
            {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        ],
    }
    manifest: dict[str, Any] = json.loads((Path(str(like.path)) / MANIFEST).read_text(encoding="utf-8"))
    return manifest | shown
