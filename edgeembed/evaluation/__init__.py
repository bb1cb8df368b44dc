"""Evaluate sentence encoders: similarity, retrieval, classification and further tasks, with comparisons and tables."""

from edgeembed.corpus.pairs import SentencePairs, read_sts
from edgeembed.evaluation.encoders import EncoderLike, SentenceEncoder, count_parameters, load_encoder
from edgeembed.evaluation.model_evaluation import ModelEvaluation
from edgeembed.evaluation.report import EvaluationReport
from edgeembed.evaluation.retrieval_set import RetrievalSet, read_retrieval
from edgeembed.evaluation.scores import Score, ScoreComparison, SuiteScores, compare_scores, suite_scores
from edgeembed.evaluation.task import TASKS, EvaluationTask, Setting

__all__ = [
    "TASKS",
    "EncoderLike",
    "EvaluationReport",
    "EvaluationTask",
    "ModelEvaluation",
    "RetrievalSet",
    "Score",
    "ScoreComparison",
    "SentenceEncoder",
    "SentencePairs",
    "Setting",
    "SuiteScores",
    "compare_scores",
    "count_parameters",
    "load_encoder",
    "read_retrieval",
    "read_sts",
    "suite_scores",
]
