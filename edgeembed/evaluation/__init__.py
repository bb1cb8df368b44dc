"""Quality, one task a file."""

from edgeembed.evaluation.agreement import Agreement, ranking_agreement
from edgeembed.evaluation.encoders import SentenceEncoder, is_bundle, open_encoder
from edgeembed.evaluation.results import Comparison, Evaluation, Score, compare
from edgeembed.evaluation.retrieval import RetrievalSet, read_retrieval, score_retrieval
from edgeembed.evaluation.sts import SentencePairs, read_sts, score_sts
from edgeembed.evaluation.suite import Task, evaluate, read_tasks, score_tasks

__all__ = [
    "Agreement",
    "Comparison",
    "Evaluation",
    "RetrievalSet",
    "Score",
    "SentenceEncoder",
    "SentencePairs",
    "Task",
    "compare",
    "evaluate",
    "is_bundle",
    "open_encoder",
    "ranking_agreement",
    "read_retrieval",
    "read_sts",
    "read_tasks",
    "score_retrieval",
    "score_sts",
    "score_tasks",
]
