"""Tokenization of texts: WordPiece in Python, other tokenizers by the package `tokenizers`."""
