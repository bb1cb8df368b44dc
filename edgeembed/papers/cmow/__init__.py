"""CMOW: "Cross-architecture distillation using bidirectional CMOW embeddings" (Galke et al. 2022)."""

from edgeembed.plugins import import_modules

import_modules(__name__)
