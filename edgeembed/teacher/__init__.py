"""Embeddings of the teacher, computed once and cached on disk."""
