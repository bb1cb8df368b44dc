"""Vocabularies for students: tailored to a corpus or trimmed from a teacher's, and what each covers."""

from edgeembed_exporters.tailoring.coverage import Coverage, measure_coverage

from edgeembed.vocabulary.tailoring import train_vocabulary
from edgeembed.vocabulary.transfer import source_rows
from edgeembed.vocabulary.trimming import trim_vocabulary

__all__ = ["Coverage", "measure_coverage", "source_rows", "train_vocabulary", "trim_vocabulary"]
