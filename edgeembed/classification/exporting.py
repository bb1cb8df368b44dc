"""Prepare a text classifier for its export as a bundle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

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


def classifier_provenance(model: str | os.PathLike[str] | TextClassifier, command: Sequence[str] = ()) -> Provenance:
    """Return the provenance of a classifier's bundle, from the classifier's folder.

    The quality is that on the development split of its fine-tuning.

    Args:
        model: The classifier, or its folder.
        command: The words of the export's command after `edgeembed`; none leaves the command out.
    """
    fields = {} if isinstance(model, TextClassifier) else read_classifier_manifest(Path(model))
    known, metrics = fields.get("provenance") or {}, fields.get("metrics")
    quality = {f"development split of the fine-tuning, {fields.get('dev_examples')} examples (x100)": metrics}
    return Provenance(
        teacher=known.get("teacher"),
        recipe=known.get("recipe"),
        licenses=tuple(known.get("licenses") or ()),
        command=command_line(["edgeembed", *command]) if command else None,
        license=known.get("license"),
        base_model=known.get("base_model"),
        languages=tuple(known.get("languages") or ()),
        quality=quality if metrics else None,
    )
