"""Rankers of Xayn: "Extreme compression of sentence-transformer ranker models" (Chaulwar et al. 2022)."""
