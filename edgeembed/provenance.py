"""Provenance of students and bundles: teacher, recipe, licenses, command and scores."""

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import Manifest
from edgeembed_runtime.storage.folder_kind import FileRecord, FolderKind
from edgeembed_runtime.storage.json_fields import JsonFields

from edgeembed.models import ModelLike, find_torch_model, is_bundle, model_name

if TYPE_CHECKING:
    from edgeembed_exporters import Provenance

PROVENANCE_FILE = "edgeembed_student.json"
STUDENT_FOLDER = FolderKind(PROVENANCE_FILE, ("teacher", "recipe"), is_model=True)
_CARD = "README.md"


def read_provenance(folder: Path) -> dict[str, Any]:
    """Read a student's provenance file.

    Args:
        folder: A model folder.

    Returns:
        `teacher`, `space`, `recipe` (resolved), `licenses`, `seed`, `command` and `report`, as `distill` wrote them;
        empty if the model is not a student.

    Raises:
        InputError: If the file is not a JSON object.
    """
    file = folder / PROVENANCE_FILE
    return read_json_object(file, "expected what edgeembed distill wrote") if file.is_file() else {}


def read_json_object(file: Path, expected: str) -> dict[str, Any]:
    """Return the content of a JSON file.

    Args:
        file: The file, UTF-8.
        expected: The end of the error message, which says what the file should hold.

    Raises:
        InputError: If it cannot be read, or is not a JSON object.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read as JSON: {error}; {expected}") from error
    if not isinstance(content, dict):
        raise InputError(f"{file} holds a {type(content).__name__}; {expected}")
    return content


def stated_space(folder: Path) -> str | None:
    """Return the embedding space that a student's folder or a bundle states; None for a model that states none.

    A student states its teacher's space if it learned the teacher's embeddings. It no longer counts if a file was
    changed since, for example by further training.

    Args:
        folder: A model folder.

    Raises:
        InputError: If the student's provenance file, or the bundle's manifest, cannot be read.
    """
    if is_bundle(folder):
        return Manifest.from_folder(folder).space
    space = read_provenance(folder).get("space")
    if not isinstance(space, str) or not space:
        return None
    records = (FileRecord.parse(each) for each in JsonFields.read(folder / PROVENANCE_FILE).children("files"))
    changed = any(each.difference(folder) is not None for each in records if each.name != _CARD)
    return None if changed else space


def bundle_provenance(model: ModelLike, arguments: Sequence[str] = ()) -> "Provenance":
    """Return the provenance of a model's bundle, from the student's provenance file and the model's card.

    The quality is the score of a student on the development set of its distillation.

    Args:
        model: As for `load_model`. Of a loaded model only its card data is known.
        arguments: The words of the export command after `edgeembed`; empty to omit the command.
    """
    from edgeembed_exporters import Provenance
    from edgeembed_exporters.cards.card import read_front_matter
    from edgeembed_exporters.cards.paths import command_line

    known: dict[str, Any] = {}
    space = None
    if isinstance(model, str | os.PathLike):
        folder = find_torch_model(model)
        known, card, space = read_provenance(folder), read_front_matter(folder / _CARD), stated_space(folder)
    else:
        data = getattr(model, "model_card_data", None)
        card = {name: getattr(data, name, None) for name in ("license", "base_model", "language")}
    made = [command_line(shlex.split(known["command"]))] if known.get("command") else []
    exported = [command_line(["edgeembed", *arguments])] if arguments else []
    teacher = known.get("teacher")
    return Provenance(
        teacher=teacher,
        space=space,
        recipe=known.get("recipe"),
        licenses=tuple(known.get("licenses", ())),
        command=" && ".join([*made, *exported]) or None,
        license=next(iter(card_strings(card.get("license"))), None),
        base_model=next(iter(card_strings(card.get("base_model"))), None) or teacher or model_name(model),
        languages=card_strings(card.get("language")),
        quality=_student_scores(known),
    )


def _student_scores(known: dict[str, Any]) -> dict[str, Any] | None:
    """Return the last score on the development set of a distillation; None if there is none."""
    report = known.get("report") or {}
    measured = [score for score in report.get("dev_spearman", ()) if score is not None]
    return {"dev set of the distillation, of the student (Spearman x100)": measured[-1]} if measured else None


def card_strings(value: object) -> tuple[str, ...]:
    """Return the strings of a card's value, which is one string or a list of them."""
    values = value if isinstance(value, list) else [value]
    return tuple(each for each in values if isinstance(each, str) and each)
