"""Classifiers on top of an encoder: what they read, what they are made of, how they learn, how they are measured."""
