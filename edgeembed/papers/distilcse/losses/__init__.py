"""Losses that only this paper needs."""
