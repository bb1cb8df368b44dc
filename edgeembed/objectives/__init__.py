"""Distillation objectives, one a file."""
