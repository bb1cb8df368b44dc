"""The origin of a model, for the manifest and the model card."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Provenance:
    """The origin of a model and what was measured on it elsewhere, for the manifest and the model card.

    Attributes:
        teacher: The model that it was distilled from; None if it is not a student.
        space: The embedding space that it shares with its teacher, or that its bundle states; None for its own.
        recipe: The resolved values of the distillation recipe.
        licenses: Licenses of the training text.
        command: The command that made the bundle.
        license: License of the weights as the Hugging Face Hub spells it, such as "apache-2.0".
        base_model: The model that was exported; for a student, its teacher.
        languages: Language codes, such as "en".
        quality: Scores.
        latency: Times per text, and the machine they were measured on.
    """

    teacher: str | None = None
    space: str | None = None
    recipe: dict[str, Any] | None = None
    licenses: tuple[str, ...] = ()
    command: str | None = None
    license: str | None = None
    base_model: str | None = None
    languages: tuple[str, ...] = ()
    quality: dict[str, Any] | None = None
    latency: dict[str, Any] | None = None
