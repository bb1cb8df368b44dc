"""Encode corpora of any size into shards, on this machine or on a Ray cluster."""
