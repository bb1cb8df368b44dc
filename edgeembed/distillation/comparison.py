"""Compare a trained student with its teacher: nearest neighbors, and whether it has learned the embedding space."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from edgeembed_exporters.rank_agreement import normalize_rows, rank_agreement
from sentence_transformers import SentenceTransformer

from edgeembed.progress import TimedSteps

if TYPE_CHECKING:
    from edgeembed.distillation.pipeline import Prepared

# The mean cosine of a student that shares its teacher's space. Students of 2 to 5 MB reach 0.7 to 0.85.
_MIN_SPACE_COSINE = 0.5
_MAX_SENTENCES = 1_000


class Comparison(NamedTuple):
    """The result of a comparison.

    Attributes:
        space: The name of the teacher's embedding space if the student has learned it; None otherwise.
        held_out_agreement: As in `DistillationReport`; None without held-out sentences.
    """

    space: str | None
    held_out_agreement: float | None


def compare_with_teacher(prepared: Prepared, student: SentenceTransformer, steps: TimedSteps) -> Comparison:
    """Compare the embeddings of a trained student with the teacher's, on held-out sentences if there are any.

    The student has learned the teacher's space if the mean cosine of both embeddings reaches 0.5. The teacher's mean is
    subtracted first, since all embeddings of some teachers have high cosines. Without held-out sentences this is
    measured on up to 1,000 sentences that the student has learned from.

    Args:
        prepared: What the student was to learn.
        student: The trained student.
        steps: Times the comparison, and receives a line if the student was to learn the space and has not.
    """
    if prepared.cached is None:
        return Comparison(None, None)
    sentences, expected = prepared.held_out, prepared.held_out_embeddings
    if expected is None:
        if prepared.space is None:
            return Comparison(None, None)
        every = -(-len(prepared.text.sentences) // _MAX_SENTENCES)
        sentences, expected = list(prepared.text.sentences[::every]), prepared.cached.vectors[::every]
    with steps.step("compare"):
        given = student.encode(sentences, convert_to_numpy=True, show_progress_bar=False)
    overlap = None if prepared.held_out_embeddings is None else rank_agreement(expected, given).top_10_overlap
    agreement = None if overlap is None else 100 * overlap
    if prepared.space is None:
        return Comparison(None, agreement)
    cosine = _centered_cosine(expected, given)
    if cosine >= _MIN_SPACE_COSINE:  # false for NaN
        return Comparison(prepared.space, agreement)
    steps.reporter.note(
        f"the student has an embedding space of its own: its mean cosine to the teacher's centered embeddings is "
        f"{cosine:.2f}, and the teacher's space needs {_MIN_SPACE_COSINE}; train it for longer to share it"
    )
    return Comparison(None, agreement)


def _centered_cosine(expected: npt.NDArray[np.float16], given: npt.NDArray[np.float32]) -> float:
    """Return the mean cosine of two models' embeddings (texts, dimension), after subtracting the first's mean."""
    teacher, student = normalize_rows(expected), normalize_rows(given)
    mean = teacher.mean(axis=0)
    return float((normalize_rows(teacher - mean) * normalize_rows(student - mean)).sum(axis=1).mean())
