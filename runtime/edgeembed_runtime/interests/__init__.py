"""Interests of a user, stored on the device: centers of interest, their arithmetic and their SQLite store."""
