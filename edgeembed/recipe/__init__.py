"""Recipes: every setting of a distillation, and the TOML files that ship with the package."""
