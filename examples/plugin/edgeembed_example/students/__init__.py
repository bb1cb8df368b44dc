"""Imported when edgeembed looks for students."""
