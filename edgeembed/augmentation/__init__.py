"""Variants of sentences, to distil from more text than there is: WordNet synonyms and back-translation (HPD)."""

from edgeembed.augmentation.augment import AugmentationReport, Augmented, MethodReport, Sample, augment

__all__ = ["AugmentationReport", "Augmented", "MethodReport", "Sample", "augment"]
