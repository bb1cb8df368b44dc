"""DistilCSE: "Effective Knowledge Distillation For Contrastive Sentence Embeddings" (Gao et al. 2022)."""
