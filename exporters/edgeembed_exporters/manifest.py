"""A bundle's edgeembed.json, as the runtime reads it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import edgeembed_runtime
from edgeembed_runtime.manifest import CHECKSUM, MANIFEST, ROLES, SCHEMA_VERSION, Parity, checksum_line
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.storage.folder_kind import FileRecord

from edgeembed_exporters.card import without_paths
from edgeembed_exporters.options import Provenance
from edgeembed_exporters.source import Source
from edgeembed_exporters.tokenizer import write_json


def describe(  # noqa: PLR0913  # what a manifest says
    source: Source,
    provenance: Provenance,
    *,
    name: str,
    role: str,
    precision: str,
    backend: str,
    model_file: str,
    num_parameters: int,
    quality: dict[str, Any] | None,
    latency: dict[str, Any] | None = None,
    near_cosine: float | None = None,
    reduction: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Give what a manifest says of a model, before its files are written and its parity is measured.

    Args:
        source: The parts of the model.
        provenance: Where it comes from.
        name: What the encoder is called.
        role: "semantic", "relevance" or "both".
        precision: "fp32", "fp16", "int8" or "int4".
        backend: "onnx" or "numpy".
        model_file: The model's path within the folder.
        num_parameters: The number of the model's weights.
        quality: Scores.
        latency: What one text takes, and on which machine; None where that was not measured.
        near_cosine: The cosine from which a text joins a center of interest; None if it was not measured.
        reduction: What was cut from the model before, and what that cost; None where nothing was.
    """
    roles = list(ROLES) if role == "both" else [role]
    return {
        "schema_version": SCHEMA_VERSION,
        "edgeembed_version": edgeembed_runtime.__version__,
        "name": name,
        "role": roles[0],
        "roles": roles,
        "dimension": source.dimension,
        "max_seq_length": source.max_seq_length,
        "pooling": source.pooling,
        "prompts": source.prompts,
        "default_prompt_name": source.default_prompt_name,
        "backend": backend,
        "precision": precision,
        "model_file": model_file,
        "num_parameters": num_parameters,
        "teacher": without_paths(provenance.teacher),
        "recipe": without_paths(provenance.recipe),
        "license": provenance.license,
        "base_model": without_paths(provenance.base_model),
        "languages": list(provenance.languages),
        "licenses": list(provenance.licenses),
        "parity": asdict(Parity(0, 0.0, 0.0, (), None, None, None)),
        "original_parity": None,
        "quality": without_paths(quality),
        "latency": without_paths(latency),
        "near_cosine": near_cosine,
        "reduction": reduction,
    }


def write_manifest(folder: Path, description: dict[str, Any]) -> None:
    """Write edgeembed.json over the files that a folder holds by now, and its checksum.

    Args:
        folder: The bundle's folder.
        description: What `describe` gave, with or without the parity.
    """
    records = [FileRecord.from_file(folder, name).to_json() for name in bundle_files(folder)]
    write_json(folder / MANIFEST, {**description, "files": records})
    _write_checksum(folder)


def relist(folder: Path, name: str) -> None:
    """List one file in a bundle's edgeembed.json as it is now, in its place or as a new one; all else stays.

    Args:
        folder: The bundle's folder.
        name: The file's path within it.
    """
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    others = [file for file in manifest["files"] if file["name"] != name]
    manifest["files"] = sorted([*others, FileRecord.from_file(folder, name).to_json()], key=lambda file: file["name"])
    (folder / CHECKSUM).unlink(missing_ok=True)  # whoever is killed here leaves no wrong one
    with atomic_file(folder / MANIFEST, force=True) as file:
        write_json(file, manifest)
    _write_checksum(folder)


def bundle_files(folder: Path) -> list[str]:
    """Give the names of all files of a bundle but edgeembed.json and its checksum, sorted."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in names if name not in {MANIFEST, CHECKSUM})


def _write_checksum(folder: Path) -> None:
    with atomic_file(folder / CHECKSUM, force=True) as file:
        file.write_text(checksum_line(folder), encoding="utf-8", newline="\n")
