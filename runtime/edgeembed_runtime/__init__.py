"""Run a bundle: text in, vectors and rankings out."""
