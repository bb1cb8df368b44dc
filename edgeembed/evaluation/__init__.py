"""Quality, one task a file."""

from edgeembed.evaluation.agreement import Agreement, ranking_agreement
from edgeembed.evaluation.bitext import Bitext, BitextSet, read_bitext, score_bitext
from edgeembed.evaluation.cross_lingual_retrieval import (
    CrossLingualRetrieval,
    read_cross_lingual_retrieval,
    score_cross_lingual_retrieval,
)
from edgeembed.evaluation.cross_lingual_sts import CrossLingualPairs, read_cross_lingual_sts, score_cross_lingual_sts
from edgeembed.evaluation.encoders import SentenceEncoder, open_encoder
from edgeembed.evaluation.entity_resolution import EntitySet, read_entities, score_entities
from edgeembed.evaluation.geometry import GeometrySet, read_geometry, score_geometry
from edgeembed.evaluation.parameters import count_parameters
from edgeembed.evaluation.results import Evaluation
from edgeembed.evaluation.retrieval import RetrievalSet, read_retrieval, score_retrieval
from edgeembed.evaluation.scores import Comparison, Score, compare
from edgeembed.evaluation.semantic_retrieval import ListSettings, Savings, index_documents, score_searches, search_task
from edgeembed.evaluation.seven_sets import SevenSets, read_seven_sets, seven_sets
from edgeembed.evaluation.sts import SentencePairs, read_sts, score_sts
from edgeembed.evaluation.suite import Task, TaskPaths, evaluate, evaluate_models, read_tasks, score_tasks
from edgeembed.evaluation.tables import evaluation_markdown, evaluation_tables
from edgeembed.evaluation.transfer import Examples, TransferSet, read_transfer, score_transfer
from edgeembed.evaluation.word_order import WordOrderSet, read_word_order, score_word_order

__all__ = [
    "Agreement",
    "Bitext",
    "BitextSet",
    "Comparison",
    "CrossLingualPairs",
    "CrossLingualRetrieval",
    "EntitySet",
    "Evaluation",
    "Examples",
    "GeometrySet",
    "ListSettings",
    "RetrievalSet",
    "Savings",
    "Score",
    "SentenceEncoder",
    "SentencePairs",
    "SevenSets",
    "Task",
    "TaskPaths",
    "TransferSet",
    "WordOrderSet",
    "compare",
    "count_parameters",
    "evaluate",
    "evaluate_models",
    "evaluation_markdown",
    "evaluation_tables",
    "index_documents",
    "open_encoder",
    "ranking_agreement",
    "read_bitext",
    "read_cross_lingual_retrieval",
    "read_cross_lingual_sts",
    "read_entities",
    "read_geometry",
    "read_retrieval",
    "read_seven_sets",
    "read_sts",
    "read_tasks",
    "read_transfer",
    "read_word_order",
    "score_bitext",
    "score_cross_lingual_retrieval",
    "score_cross_lingual_sts",
    "score_entities",
    "score_geometry",
    "score_retrieval",
    "score_searches",
    "score_sts",
    "score_tasks",
    "score_transfer",
    "score_word_order",
    "search_task",
    "seven_sets",
]
