"""SimTDE: "Simple Transformer Distillation for Sentence Embeddings" (Xie et al. 2023)."""
