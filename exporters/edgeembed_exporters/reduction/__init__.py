"""Reduce a model without training: fewer tokens, fewer dimensions.

Nothing is imported here, because the vocabulary tools are also used where torch must not be imported.
"""
