"""A model cut to what a corpus needs, without training.

Nothing is imported here: the vocabulary tools are also used where torch is not wanted.
"""
