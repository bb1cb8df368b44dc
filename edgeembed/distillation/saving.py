"""The folder of a student: weights, provenance and model card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgeembed_exporters.cards.card import read_front_matter
from edgeembed_exporters.cards.paths import command_line, without_paths
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_folder
from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer

from edgeembed.distillation.report import DistillationReport
from edgeembed.models import find_local_bundle
from edgeembed.provenance import STUDENT_FOLDER
from edgeembed.recipe.schema import Recipe
from edgeembed.students.card import student_card


def save_student(
    student: SentenceTransformer,
    recipe: Recipe,
    teacher: Path | None,
    report: DistillationReport,
    sources: Sequence[str],
    *,
    seed: int,
    force: bool,
    command: Sequence[str] = (),
) -> None:
    """Write a student's folder: weights, provenance and model card, without paths of this machine.

    Args:
        student: The student.
        recipe: The recipe.
        teacher: The teacher's folder; None for a model that was given in memory.
        report: The report of its distillation; `path` is the folder to write.
        sources: Names of the files that it learned from.
        seed: The seed.
        force: Whether to replace an existing student.
        command: The command line.

    Raises:
        InputError: If the folder exists and `force` is not set, or cannot be written.
    """
    out, bundle = report.path, find_local_bundle(recipe.teacher)
    with atomic_folder(out, force=force, kind=STUDENT_FOLDER) as folder:
        try:
            student.cpu().save(str(folder), create_model_card=False)
        except SafetensorError as error:  # its way to report a full disk
            raise InputError(f"cannot write {out}: {error}; free some space or choose another folder") from error
        measured = {key: value for key, value in report.to_dict().items() if key != "history"}
        teacher_name = bundle.name if bundle else recipe.teacher
        provenance: dict[str, Any] = {
            "teacher": teacher_name,
            "space": report.space,
            "licenses": list(recipe.corpus.licenses),
            "command": command_line(command) or None,
            "training_text": ["standard input" if name == "-" else Path(name).name for name in sources],
            "seed": seed,
            "recipe": {**recipe.to_dict(), "teacher": teacher_name},
            "report": {**measured, "path": out.name},
        }
        provenance = without_paths(provenance)
        described = bundle or teacher
        teacher_card = read_front_matter(described / "README.md") if described else {}
        (folder / "README.md").write_text(student_card(out.name, provenance, teacher_card), encoding="utf-8")
        STUDENT_FOLDER.write_manifest(folder, provenance)  # last: it lists all files of the folder
