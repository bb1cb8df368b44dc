"""CMOW: "Cross-architecture distillation using bidirectional CMOW embeddings" (Galke et al. 2022)."""
