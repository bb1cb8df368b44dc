"""Kinds of students by name: each is one class in one module, with its settings and its construction."""
