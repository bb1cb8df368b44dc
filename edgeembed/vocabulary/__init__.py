"""Vocabularies of students: training, trimming, coverage, and the transfer of embeddings to new tokens."""

from edgeembed_exporters.reduction.coverage import Coverage, measure_coverage

from edgeembed.vocabulary.coverage import LanguageCoverage, measure_language_coverage, measure_whole_words
from edgeembed.vocabulary.embedding_transfer import source_token_ids
from edgeembed.vocabulary.report import VocabularyReport, coverage_table
from edgeembed.vocabulary.training import train_vocabulary
from edgeembed.vocabulary.wordpiece import train_multilingual_wordpiece, train_wordpiece, trim_wordpiece

__all__ = [
    "Coverage",
    "LanguageCoverage",
    "VocabularyReport",
    "coverage_table",
    "measure_coverage",
    "measure_language_coverage",
    "measure_whole_words",
    "source_token_ids",
    "train_multilingual_wordpiece",
    "train_vocabulary",
    "train_wordpiece",
    "trim_wordpiece",
]
