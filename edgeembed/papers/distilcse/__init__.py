"""DistilCSE: "Effective Knowledge Distillation For Contrastive Sentence Embeddings" (Gao et al. 2022)."""

from edgeembed.plugins import import_modules

import_modules(__name__)
