"""Losses by name: each is one class in one module, with its settings, its source and its code."""
