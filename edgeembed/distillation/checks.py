"""What a recipe expects of the text, checked before the teacher encodes it."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from edgeembed_exporters.rank_agreement import NEIGHBORS
from edgeembed_runtime.errors import InputError

from edgeembed.recipe.schema import Recipe

_FEWEST_TO_WHITEN = 8 * NEIGHBORS + 1  # of which one in eight measures nearest neighbors


def check_text(
    recipe: Recipe, teacher_dim: int, sentences: Sequence[str], texts: Sequence[str], domains: npt.NDArray[np.int64]
) -> None:
    """Check that a text is large and varied enough for a recipe.

    Args:
        recipe: The recipe.
        teacher_dim: Dimension of the teacher's embeddings.
        sentences: Distinct sentences, which the teacher encodes.
        texts: What the student reads.
        domains: Domain of each sentence, int64 (sentences,).

    Raises:
        InputError: If there are too few sentences for principal components, or too few domains for a loss.
    """
    dim, whiten_dim, count = recipe.head.dim, recipe.head.whiten_dim, len(sentences)
    if needs_components(recipe, teacher_dim) and count < dim:
        raise InputError(
            f"there are {count:,} sentences to fit {dim} principal components of the teacher's embeddings; expected "
            f"{dim} or more: use a larger corpus, or a smaller head.dim"
        )
    needed = max(_FEWEST_TO_WHITEN, math.ceil(whiten_dim * 8 / 7)) if whiten_dim else 0  # one in eight is held out
    if len(texts) < needed:
        raise InputError(
            f"there are {len(texts):,} texts to whiten {whiten_dim} dimensions; expected {needed:,} or more: use a "
            "larger corpus, or a smaller head.whiten_dim"
        )
    found = len(np.unique(domains))
    for name in (name for stage in recipe.stages for name, loss in stage.losses.items() if loss.compares_domains):
        if found < 2:
            raise InputError(
                f"the loss {name} compares domains, and the corpus has {found}; expected two files or more, one a "
                "domain"
            )


def needs_components(recipe: Recipe, teacher_dim: int) -> bool:
    """Return whether a student learns principal components of the teacher's embeddings, not the embeddings themselves.

    Args:
        recipe: The recipe.
        teacher_dim: Dimension of the teacher's embeddings.
    """
    head = recipe.head
    if not recipe.uses_teacher_embeddings or head.kind in {"none", "mlp"}:
        return False
    return head.kind != "linear" or head.dim != teacher_dim or head.center
