"""Prepare a text classifier for its export as a bundle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgeembed_exporters import ClassifierModel, Provenance
from edgeembed_exporters.cards.paths import command_line

from edgeembed.classification.model import TextClassifier, is_classifier_folder, read_classifier_manifest


def is_classifier(model: object) -> bool:
    """Return whether a model is a classifier, or the folder of one that `edgeembed finetune` wrote."""
    if isinstance(model, str | os.PathLike):
        return is_classifier_folder(Path(model))
    return isinstance(model, TextClassifier)


def classifier_model(model: str | os.PathLike[str] | TextClassifier) -> ClassifierModel:
    """Return a classifier as the exporter reads it.

    Args:
        model: The classifier, or its folder.

    Raises:
        InputError: If the folder cannot be read, or the classifier cannot be exported.
    """
    classifier = model if isinstance(model, TextClassifier) else TextClassifier.load(Path(model))
    return ClassifierModel(
        encoder=classifier.encoder,
        head=classifier.embedding_head(),
        labels=classifier.labels,
        is_pairs=classifier.is_pairs,
        predict_proba=classifier.predict_proba,
    )


def classifier_origin(
    model: str | os.PathLike[str] | TextClassifier,
    *,
    license_name: str | None,
    languages: Sequence[str],
    command: Sequence[str],
) -> dict[str, Any]:
    """Return the settings of an export that come from a classifier's folder: its provenance and its metrics.

    Args:
        model: The classifier, or its folder.
        license_name: License of the weights; None is the encoder's.
        languages: Language codes; if empty, the encoder's.
        command: The words of the export's command after `edgeembed`; none leaves the command out.
    """
    fields = {} if isinstance(model, TextClassifier) else read_classifier_manifest(Path(model))
    known = fields.get("provenance") or {}
    provenance = Provenance(
        teacher=known.get("teacher"),
        recipe=known.get("recipe"),
        licenses=tuple(known.get("licenses") or ()),
        command=command_line(["edgeembed", *command]) if command else None,
        license=license_name or known.get("license"),
        base_model=known.get("base_model"),
        languages=tuple(languages) or tuple(known.get("languages") or ()),
    )
    metrics = fields.get("metrics")
    quality = {f"development split of the fine-tuning, {fields.get('dev_examples')} examples (x100)": metrics}
    return {"provenance": provenance, "quality": quality if metrics else None}
