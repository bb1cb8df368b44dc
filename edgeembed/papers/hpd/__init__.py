"""HPD: "Compressing Sentence Representation via Homomorphic Projective Distillation" (Zhao et al. 2022)."""
