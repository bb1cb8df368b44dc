"""Measure what a sentence encoder costs."""
