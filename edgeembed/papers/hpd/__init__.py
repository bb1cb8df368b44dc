"""HPD: "Compressing Sentence Representation via Homomorphic Projective Distillation" (Zhao et al. 2022)."""

from edgeembed.plugins import import_modules

import_modules(__name__)
