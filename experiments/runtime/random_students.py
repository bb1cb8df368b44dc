"""Write CMOW and CBOW bundles of random weights, at the cost of trained ones.

python -m experiments.runtime.random_students --out FOLDER
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Literal, get_args

import click
import numpy as np
import numpy.typing as npt
from edgeembed_runtime import Bundle
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.cmow.model_file import BACKWARD, CBOW, FORMAT, FORMAT_VERSION, FORWARD, HEAD
from edgeembed_runtime.cmow.safetensors import pack_tensors
from edgeembed_runtime.manifest import BUNDLE_FOLDER, MANIFEST
from edgeembed_runtime.storage.atomic import atomic_folder

Architecture = Literal["hybrid", "cbow"]
ARCHITECTURES: tuple[Architecture, ...] = get_args(Architecture)

_SIDE = 20  # rows of a token's matrix, as in the CMOW paper; a CBOW vector has as many values as a matrix
_MODEL = "model.safetensors"


def write_random_student(path: Path, architecture: Architecture, like: Bundle) -> None:
    """Write a bundle with random int8 embedding tables, for the NumPy backend.

    Args:
        path: Folder of the bundle; an existing bundle is replaced.
        architecture: "hybrid" (forward and backward matrices, and the sum of vectors) or "cbow" (the mean of vectors),
            with a linear head after either.
        like: The bundle whose tokenizer, dimension and maximum length it has.
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
        "parity": {"sentences": 1, "min_cosine": 1.0, "mean_cosine": 1.0, "worst_sentences": []}
        | dict.fromkeys(("p01_cosine", "spearman", "top_10_overlap")),
        "files": [
            {"name": name, "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        ],
    }
    manifest: dict[str, Any] = json.loads((Path(str(like.path)) / MANIFEST).read_text(encoding="utf-8"))
    return manifest | shown


@click.command()
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for random-hybrid and random-cbow.")
def command(out: Path) -> None:
    """Write random bundles for the NumPy backend, with the tokenizer of the default built-in model."""
    like = Bundle.open(builtin_bundle())
    for architecture in ARCHITECTURES:
        write_random_student(out / f"random-{architecture}", architecture, like)


if __name__ == "__main__":
    command()
