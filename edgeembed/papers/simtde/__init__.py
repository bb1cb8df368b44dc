"""SimTDE: "Simple Transformer Distillation for Sentence Embeddings" (Xie et al. 2023)."""

from edgeembed.plugins import import_modules

import_modules(__name__)
