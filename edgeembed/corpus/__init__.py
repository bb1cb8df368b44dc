"""Text to distil from: clean, distinct sentences out of files, folders, pipes and Python's documentation."""

from edgeembed.corpus.docstrings import Docstring, docstrings
from edgeembed.corpus.languages import LanguageCorpus, LanguageSample, label_languages, sample_languages
from edgeembed.corpus.reading import Corpus, gather_corpus, held_out_count, read_corpus, split_holdout
from edgeembed.corpus.sentences import split_sentences
from edgeembed.corpus.sieve import CorpusCounts

__all__ = [
    "Corpus",
    "CorpusCounts",
    "Docstring",
    "LanguageCorpus",
    "LanguageSample",
    "docstrings",
    "gather_corpus",
    "held_out_count",
    "label_languages",
    "read_corpus",
    "sample_languages",
    "split_holdout",
    "split_sentences",
]
