"""Embeddings of texts, computed once: the store, the encoders that fill it, on this machine or on a Ray cluster."""
