"""Text to distil from: clean, distinct sentences out of files, folders, pipes and Python's own documentation."""

from edgeembed.corpus.reading import Corpus, CorpusCounts, gather_corpus, read_corpus, split_holdout

__all__ = ["Corpus", "CorpusCounts", "gather_corpus", "read_corpus", "split_holdout"]
