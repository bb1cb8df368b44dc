"""Evaluation tasks of this paper."""
