"""Vocabularies for students: tailored to a corpus, trimmed from a teacher's, and what each covers."""

from edgeembed.vocabulary.transfer import source_rows
from edgeembed.vocabulary.trimming import trim_vocabulary

__all__ = ["source_rows", "trim_vocabulary"]
