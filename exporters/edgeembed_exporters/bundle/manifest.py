"""Write a bundle's edgeembed.json, which the runtime reads."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import edgeembed_runtime
from edgeembed_runtime import BundleError
from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.manifest import CHECKSUM, MANIFEST, ROLES, SCHEMA_VERSION, checksum_line
from edgeembed_runtime.parity import Parity
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.storage.folder_kind import FileRecord
from edgeembed_runtime.storage.json_fields import JsonFields

from edgeembed_exporters.bundle.hub_files import json_text, write_json
from edgeembed_exporters.bundle_settings import BundleSettings
from edgeembed_exporters.cards.paths import without_paths
from edgeembed_exporters.model_spec import ModelSpec
from edgeembed_exporters.provenance import Provenance

_NOT_MEASURED = Parity(0, 0.0, 0.0, (), None, None, None)


def manifest_fields(
    spec: ModelSpec,
    settings: BundleSettings,
    provenance: Provenance,
    *,
    precision: str,
    model_file: str,
    num_parameters: int,
) -> dict[str, Any]:
    """Return the fields of edgeembed.json, except the list of files, as they are before any reduction and measurement.

    Args:
        spec: The parts of the model.
        settings: The settings of the bundle, with a name.
        provenance: The model's origin.
        precision: The precision of the weights.
        model_file: The model's path in the folder.
        num_parameters: The number of weights.
    """
    roles = list(ROLES) if settings.role == "both" else [settings.role]
    return {
        "schema_version": SCHEMA_VERSION,
        "edgeembed_version": edgeembed_runtime.__version__,
        "name": settings.name,
        "role": roles[0],
        "roles": roles,
        "dimension": spec.dimension,
        "max_seq_length": spec.max_seq_length,
        "pooling": spec.pooling,
        "prompts": spec.prompts,
        "default_prompt_name": spec.default_prompt_name,
        "backend": settings.backend,
        "precision": precision,
        "model_file": model_file,
        "num_parameters": num_parameters,
        "teacher": without_paths(provenance.teacher),
        "space": None,
        "recipe": without_paths(provenance.recipe),
        "license": provenance.license,
        "base_model": without_paths(provenance.base_model),
        "languages": list(provenance.languages),
        "licenses": list(provenance.licenses),
        "parity": asdict(_NOT_MEASURED),
        "original_parity": None,
        "quality": without_paths(provenance.quality),
        "latency": without_paths(provenance.latency),
        "near_cosine": settings.near_cosine,
        "reduction": None,
    }


def unwritten_bundle(folder: Path, manifest: Mapping[str, Any]) -> Bundle:
    """Return the bundle in a folder that has no edgeembed.json yet, so that an Encoder can load it.

    Args:
        folder: The folder, with the model and the tokenizer.
        manifest: The fields of edgeembed.json.
    """
    fields = JsonFields(json.loads(manifest_text(folder, manifest)), str(folder / MANIFEST), BundleError)
    return Bundle(fields, folder)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write edgeembed.json with the records of all files in a folder, and its checksum.

    Args:
        folder: The bundle's folder.
        manifest: The fields of edgeembed.json.
    """
    (folder / MANIFEST).write_text(manifest_text(folder, manifest), encoding="utf-8")
    _write_checksum(folder)


def manifest_text(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Return the content of edgeembed.json, with the records of all files in a folder.

    Args:
        folder: The bundle's folder.
        manifest: The fields of edgeembed.json.
    """
    return json_text({**manifest, "files": [record.to_json() for record in file_records(folder)]})


def update_file_record(folder: Path, name: str) -> None:
    """Record one file in a bundle's existing edgeembed.json, and change nothing else in it.

    Args:
        folder: The bundle's folder.
        name: The file's path in the folder.
    """
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    others = [file for file in manifest["files"] if file["name"] != name]
    manifest["files"] = sorted([*others, FileRecord.from_file(folder, name).to_json()], key=lambda file: file["name"])
    (folder / CHECKSUM).unlink(missing_ok=True)  # a process that is killed here leaves no wrong checksum
    with atomic_file(folder / MANIFEST, force=True) as file:
        write_json(file, manifest)
    _write_checksum(folder)


def file_records(folder: Path) -> tuple[FileRecord, ...]:
    """Return the records of all files in a bundle except edgeembed.json and its checksum, sorted by name."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return tuple(FileRecord.from_file(folder, name) for name in sorted(names) if name not in {MANIFEST, CHECKSUM})


def _write_checksum(folder: Path) -> None:
    with atomic_file(folder / CHECKSUM, force=True) as file:
        file.write_text(checksum_line(folder), encoding="utf-8", newline="\n")
