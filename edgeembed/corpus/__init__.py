"""Text to distil from: clean, distinct sentences out of files, folders, pipes and Python's documentation."""

from edgeembed.corpus.docstrings import Docstring, docstrings
from edgeembed.corpus.reading import Corpus, CorpusCounts, gather_corpus, read_corpus, split_holdout
from edgeembed.corpus.sentences import split_sentences

__all__ = [
    "Corpus",
    "CorpusCounts",
    "Docstring",
    "docstrings",
    "gather_corpus",
    "read_corpus",
    "split_holdout",
    "split_sentences",
]
