"""Corpora: clean, distinct sentences of files, folders, standard input, datasets and Python's documentation."""

from edgeembed.corpus.docstrings import Docstring, docstrings
from edgeembed.corpus.filtering import CorpusCounts
from edgeembed.corpus.inputs import CorpusLike, corpus_paths, iter_texts, open_corpus
from edgeembed.corpus.languages import LanguageCorpus, LanguageSample, label_languages, sample_languages
from edgeembed.corpus.reading import Corpus, SentenceStream, gather_corpus, read_corpus, stream_corpus
from edgeembed.corpus.sampling import held_out_count, held_out_rows, split_holdout
from edgeembed.corpus.sentences import split_sentences

__all__ = [
    "Corpus",
    "CorpusCounts",
    "CorpusLike",
    "Docstring",
    "LanguageCorpus",
    "LanguageSample",
    "SentenceStream",
    "corpus_paths",
    "docstrings",
    "gather_corpus",
    "held_out_count",
    "held_out_rows",
    "iter_texts",
    "label_languages",
    "open_corpus",
    "read_corpus",
    "sample_languages",
    "split_holdout",
    "split_sentences",
    "stream_corpus",
]
