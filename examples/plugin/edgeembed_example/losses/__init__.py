"""Imported when edgeembed looks for losses."""
