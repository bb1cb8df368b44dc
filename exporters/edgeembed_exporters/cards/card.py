"""Write a model card from its template, and read the front matter of any card."""

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCard, ModelCardData


def bundle_card(manifest: dict[str, Any], *, size_bytes: int, command: str | None) -> str:
    """Return the model card of a bundle as Markdown.

    Args:
        manifest: The content of edgeembed.json, of an encoder or a classifier.
        size_bytes: Size of the bundle's files.
        command: The command that made the bundle; None if it is unknown.
    """
    is_classifier = "labels" in manifest
    task = "text-classification" if is_classifier else "sentence-similarity"
    return render_card(
        "classifier_bundle" if is_classifier else "bundle",
        front_matter(
            license=manifest["license"],
            base_model=manifest["base_model"],
            languages=manifest["languages"],
            library="edgeembed",
            task=task,
            tags=[task, "edgeembed", manifest["backend"]],
        ),
        manifest=manifest,
        size_mb=f"{size_bytes / 1e6:.1f}",
        command=command,
        quality=_code_block(manifest["quality"]),
        latency=_code_block(manifest["latency"]),
    )


def render_card(template: str, data: ModelCardData, **values: Any) -> str:
    """Return a model card as Markdown.

    Args:
        template: Name of a template in this package, such as "student".
        data: The front matter.
        values: What the template shows.
    """
    text = (resources.files(__package__) / f"{template}.md").read_text(encoding="utf-8")
    return f"{ModelCard.from_template(data, template_str=text, **values)}\n"


def front_matter(
    *,
    license: str | None,  # noqa: A002  # what the Hugging Face Hub calls it
    base_model: str | None,
    languages: Sequence[str],
    library: str,
    task: str,
    tags: Sequence[str],
    datasets: Sequence[str] = (),
) -> ModelCardData:
    """Return the front matter of a model card, which the Hugging Face Hub reads.

    Args:
        license: License of the weights, as the Hub spells it; None is written as "unknown".
        base_model: The model that this one was made from; None leaves it out.
        languages: Language codes; if empty, they are left out.
        library: The library that loads the model.
        task: The task as the Hub names it, such as "sentence-similarity".
        tags: Tags.
        datasets: Names of the training text; if empty, they are left out.
    """
    return ModelCardData(
        license=license or "unknown",
        base_model=base_model or None,
        language=list(languages) or None,
        library_name=library,
        pipeline_tag=task,
        tags=list(tags),
        datasets=list(datasets) or None,
    )


def read_front_matter(card: Path) -> dict[str, Any]:
    """Return the YAML front matter of a model card; empty if the file or its front matter is missing or broken."""
    try:
        text = card.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    start, _, rest = text.partition("---\n")
    block, end, _ = rest.partition("\n---")
    if start.strip() or not end:
        return {}
    try:
        values = yaml.safe_load(block)
    except yaml.YAMLError:
        return {}
    return values if isinstance(values, dict) else {}


def _code_block(values: dict[str, Any] | None) -> str | None:
    """Return values as a JSON code block in Markdown; None if there are none."""
    return f"```json\n{json.dumps(values, indent=2, ensure_ascii=False)}\n```" if values else None
