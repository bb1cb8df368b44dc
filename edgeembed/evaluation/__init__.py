"""Evaluate sentence encoders: similarity, retrieval, classification and further tasks, with comparisons and tables."""

from edgeembed.corpus.pairs import SentencePairs, read_sts
from edgeembed.evaluation.bitext import Bitext, BitextSet, read_bitext, score_bitext
from edgeembed.evaluation.cross_lingual import (
    CrossLingualRetrieval,
    CrossLingualSTS,
    read_cross_lingual_retrieval,
    read_cross_lingual_sts,
    score_cross_lingual_retrieval,
    score_cross_lingual_sts,
)
from edgeembed.evaluation.encoders import EncoderLike, SentenceEncoder, count_parameters, load_encoder
from edgeembed.evaluation.entity_resolution import EntitySet, read_entities, score_entities
from edgeembed.evaluation.evaluator import evaluate
from edgeembed.evaluation.geometry import GeometrySet, read_geometry, score_geometry
from edgeembed.evaluation.glue import GlueTask, read_glue, score_glue
from edgeembed.evaluation.report import EvaluationReport, ModelEvaluation, SuiteScores, suite_scores
from edgeembed.evaluation.retrieval import RetrievalSet, read_retrieval, score_retrieval
from edgeembed.evaluation.scores import Score, ScoreComparison, compare_scores
from edgeembed.evaluation.semantic_retrieval import SearchSavings
from edgeembed.evaluation.sts import read_sts_suite, score_sts
from edgeembed.evaluation.transfer import TransferExamples, TransferSet, read_transfer, score_transfer
from edgeembed.evaluation.word_order import WordOrderSet, read_word_order, score_word_order

__all__ = [
    "Bitext",
    "BitextSet",
    "CrossLingualRetrieval",
    "CrossLingualSTS",
    "EncoderLike",
    "EntitySet",
    "EvaluationReport",
    "GeometrySet",
    "GlueTask",
    "ModelEvaluation",
    "RetrievalSet",
    "Score",
    "ScoreComparison",
    "SearchSavings",
    "SentenceEncoder",
    "SentencePairs",
    "SuiteScores",
    "TransferExamples",
    "TransferSet",
    "WordOrderSet",
    "compare_scores",
    "count_parameters",
    "evaluate",
    "load_encoder",
    "read_bitext",
    "read_cross_lingual_retrieval",
    "read_cross_lingual_sts",
    "read_entities",
    "read_geometry",
    "read_glue",
    "read_retrieval",
    "read_sts",
    "read_sts_suite",
    "read_transfer",
    "read_word_order",
    "score_bitext",
    "score_cross_lingual_retrieval",
    "score_cross_lingual_sts",
    "score_entities",
    "score_geometry",
    "score_glue",
    "score_retrieval",
    "score_sts",
    "score_transfer",
    "score_word_order",
    "suite_scores",
]
