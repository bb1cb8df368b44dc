"""Augmentation of a corpus with variants of its sentences: WordNet synonyms and back-translation (HPD)."""

from edgeembed.augmentation.pipeline import (
    AugmentationReport,
    AugmentationSummary,
    AugmentedSentences,
    MethodReport,
    Sample,
    augment,
    augment_sentences,
    augmentation_methods,
)

__all__ = [
    "AugmentationReport",
    "AugmentationSummary",
    "AugmentedSentences",
    "MethodReport",
    "Sample",
    "augment",
    "augment_sentences",
    "augmentation_methods",
]
