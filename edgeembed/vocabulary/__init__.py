"""Vocabularies for students: tailored to a corpus or trimmed from a teacher's, and what each covers."""

from edgeembed_exporters.tailoring.coverage import Coverage, measure_coverage

from edgeembed.vocabulary.languages import LanguageReport, report_languages
from edgeembed.vocabulary.tailoring import train_multilingual_vocabulary, train_vocabulary
from edgeembed.vocabulary.transfer import source_rows
from edgeembed.vocabulary.trimming import trim_vocabulary
from edgeembed.vocabulary.words import whole_words

__all__ = [
    "Coverage",
    "LanguageReport",
    "measure_coverage",
    "report_languages",
    "source_rows",
    "train_multilingual_vocabulary",
    "train_vocabulary",
    "trim_vocabulary",
    "whole_words",
]
