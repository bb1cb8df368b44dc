"""A student without attention, built from a recipe."""

from dataclasses import asdict

import torch
from transformers import PreTrainedTokenizerBase

from edgeembed.projection import low_rank
from edgeembed.recipe import Recipe
from edgeembed.students.cmow import MatrixEmbedding, Shape
from edgeembed.students.matrix_tables import TokenTable


def matrix_shape(recipe: Recipe) -> Shape:
    """Give what a recipe's matrix student is made of."""
    dimension = recipe.head.dim if recipe.head.kind == "linear" else 0
    architecture = recipe.student.architecture
    if architecture == "transformer":
        raise ValueError("a transformer has no matrices")
    return Shape(architecture=architecture, dimension=dimension, **asdict(recipe.student.matrix))


def build_matrix_student(
    recipe: Recipe, tokenizer: PreTrainedTokenizerBase, token_targets: torch.Tensor, token_weights: torch.Tensor
) -> MatrixEmbedding:
    """Build a student's first module: matrices beside the identity by chance, vectors by the teacher's token table.

    Args:
        recipe: What it is to be.
        tokenizer: Its tokenizer.
        token_targets: The teacher's token embeddings, float32 (vocabulary, width).
        token_weights: How much each token matters, float32 (vocabulary,).
    """
    settings = recipe.student
    student = MatrixEmbedding(tokenizer, matrix_shape(recipe), settings.max_seq_length, settings.dropout)
    if student.vectors is not None and settings.table_init == "svd":
        _fill(student.vectors, token_targets, token_weights)
    return student


def _fill(table: TokenTable, targets: torch.Tensor, weights: torch.Tensor) -> None:
    count = min(table.weight.shape[1], targets.shape[1])
    with torch.no_grad():
        table.weight[:, :count] = low_rank(targets, weights, count)[0]
        if table.basis is not None:
            torch.nn.init.eye_(table.basis)
