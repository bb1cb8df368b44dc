import numpy as np
import pytest
import torch
from torch import nn

from edgeembed.objectives import (
    DistillationLoss,
    ObjectiveInputs,
    TokenEmbedding,
    cosine,
    kl,
    mae,
    mse,
    similarity,
    similarity_mae,
)
from edgeembed.projection import Projection
from edgeembed.students.transformer import FactorisedEmbedding


def inputs(student: torch.Tensor, target: torch.Tensor, teacher: torch.Tensor | None = None) -> ObjectiveInputs:
    ids = torch.tensor([[2, 5, 3, 0], [2, 6, 5, 3]])
    teacher = target if teacher is None else teacher
    return ObjectiveInputs(student, target, teacher, ids, (ids > 0).long(), student_raw=student, target_raw=target)


def random_inputs(batch: int = 7, dim: int = 5) -> tuple[ObjectiveInputs, "np.ndarray", "np.ndarray"]:
    """Vectors of any length, and the same in float64."""
    draw = np.random.default_rng(4)
    student, target = (draw.normal(size=(batch, dim)) for _ in range(2))
    return inputs(torch.tensor(student, dtype=torch.float32), torch.tensor(target, dtype=torch.float32)), student, target


def test_mse_is_simtdes_equation_4_and_mae_its_ablation() -> None:
    given, student, target = random_inputs()
    assert float(mse(given)) == pytest.approx(np.mean((student - target) ** 2), rel=1e-6)
    assert float(mae(given)) == pytest.approx(np.mean(np.abs(student - target)), rel=1e-6)


def test_mse_times_the_dimensions_is_hpds_equation_2() -> None:
    given, student, target = random_inputs()
    equation_2 = np.mean([np.linalg.norm(ours - theirs) ** 2 for ours, theirs in zip(student, target, strict=True)])
    assert student.shape[1] * float(mse(given)) == pytest.approx(equation_2, rel=1e-6)


def test_kl_is_the_divergence_of_softmaxed_vectors() -> None:
    given, student, target = random_inputs()
    ours, theirs = (np.exp(each) / np.exp(each).sum(axis=1, keepdims=True) for each in (student, target))
    assert float(kl(given)) == pytest.approx(np.mean((theirs * np.log(theirs / ours)).sum(axis=1)), rel=1e-5)


def test_similarity_mae_is_the_mean_absolute_difference_of_all_pairs() -> None:
    given, student, target = random_inputs()
    expected = np.mean(np.abs(student @ student.T - target @ target.T))
    assert float(similarity_mae(given)) == pytest.approx(expected, rel=1e-5)


def test_cosine_is_zero_on_the_target_one_across_it_two_against_it() -> None:
    east, north = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    values = [float(cosine(inputs(east, other))) for other in (east, north, -east)]
    assert values == pytest.approx([0, 1, 2])


def test_similarity_compares_the_pairs_of_a_batch_by_hand() -> None:
    student = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    teacher = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    # The two off-diagonal cosines are 0 against 0.6, the two diagonal ones agree: (2 * 0.36) / 4.
    assert float(similarity(inputs(student, student, teacher))) == pytest.approx(0.18)


def test_similarity_does_not_mind_a_rotation() -> None:
    vectors = nn.functional.normalize(torch.randn(6, 4, generator=torch.Generator().manual_seed(0)))
    rotation, _ = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(1)))
    assert float(similarity(inputs(vectors @ rotation, vectors, vectors))) == pytest.approx(0, abs=1e-12)


def test_token_embedding_compares_distinct_tokens_and_leaves_out_padding() -> None:
    embedding = FactorisedEmbedding(8, 2, 3)
    targets = torch.zeros(8, 3)
    with torch.no_grad():
        rows = embedding(torch.tensor([2, 3, 5, 6]))
    value = TokenEmbedding(embedding, targets)(inputs(torch.ones(2, 1), torch.ones(2, 1)))
    assert value.item() == pytest.approx(rows.square().mean().item(), rel=1e-6)


class FixedStudent(nn.Module):
    """Gives the same vectors whatever it is asked."""

    def __init__(self, vectors: torch.Tensor) -> None:
        super().__init__()
        self.vectors = nn.Parameter(vectors)

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {**features, "sentence_embedding": self.vectors}


def test_the_loss_reads_the_rows_that_the_labels_name_projects_and_weighs_them() -> None:
    cache = np.array([[9, 9, 9], [3, 1, 7], [1, 3, 7]], dtype=np.float16)
    projection = Projection(np.array([1, 1, 0], np.float32), np.eye(3, 2, dtype=np.float32), 1.0)
    student = FixedStudent(torch.tensor([[0.0, 2.0], [0.0, 5.0]]))
    loss = DistillationLoss(student, cache, projection, {"cosine": cosine}, {"cosine": 10.0})
    features = {
        "input_ids": torch.ones(2, 3, dtype=torch.long),
        "attention_mask": torch.ones(2, 3, dtype=torch.long),
    }
    values = loss([features], torch.tensor([1, 2]))
    # Rows 1 and 2 project to (2, 0) and (0, 2): cosines 0 and 1.
    assert values["cosine"].item() == pytest.approx(10 * 0.5)
    values["cosine"].backward()
    assert student.vectors.grad is not None
