"""Imported when edgeembed looks for tasks."""
