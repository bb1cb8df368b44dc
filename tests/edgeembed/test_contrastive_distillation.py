from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch

from edgeembed.losses.base import LossInputs
from edgeembed.losses.contrastive_distillation import ContrastiveDistillationLoss
from edgeembed.losses.weighted_sum import DistillationLoss

DIM, TEMPERATURE = 5, 0.05
Matrix = npt.NDArray[np.float64]
NOTHING = np.zeros((0, DIM))


def unit(draw: np.random.Generator, count: int) -> Matrix:
    vectors = draw.normal(size=(count, DIM))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def given(student: Matrix, target: Matrix, rows: list[int] | None = None) -> LossInputs:
    ours, theirs = (torch.tensor(each, dtype=torch.float64) for each in (student, target))
    places = torch.tensor(rows) if rows is not None else torch.arange(len(student))
    nothing = torch.zeros(len(student), 1, dtype=torch.long)
    return LossInputs(ours, theirs, theirs, places, nothing, nothing, student_raw=ours, target_raw=theirs)


def equation_5(student: Matrix, target: Matrix, bank: Matrix) -> float:
    """Return equation 5; with an empty bank it is equation 4."""
    in_batch, in_bank = np.exp(student @ target.T / TEMPERATURE), np.exp(student @ bank.T / TEMPERATURE)
    return float(np.mean(-np.log(np.diag(in_batch) / (in_batch.sum(axis=1) + in_bank.sum(axis=1)))))


def test_without_a_bank_it_is_equation_4_however_many_batches_there_were() -> None:
    draw = np.random.default_rng(1)
    contrastive = ContrastiveDistillationLoss(0, DIM, TEMPERATURE).double()
    for _ in range(3):
        student, target = unit(draw, 6), unit(draw, 6)
        assert contrastive(given(student, target)).item() == pytest.approx(
            equation_5(student, target, np.zeros((0, DIM)))
        )


def test_a_translation_in_the_batch_is_not_a_negative_of_its_sentence() -> None:
    draw = np.random.default_rng(5)
    student, target = unit(draw, 3), unit(draw, 3)
    target[2] = target[0]  # the third is a translation of the first
    contrastive = ContrastiveDistillationLoss(0, DIM, TEMPERATURE).double()
    found = contrastive(given(student, target, [7, 8, 7])).item()
    cosines = np.exp(student @ target.T / TEMPERATURE)
    negatives = np.array([cosines[0, 1], cosines[1, [0, 2]].sum(), cosines[2, 1]])
    assert found == pytest.approx(np.mean(-np.log(np.diag(cosines) / (np.diag(cosines) + negatives))))


def test_with_a_bank_it_is_equation_5_and_the_oldest_leave_first() -> None:
    draw = np.random.default_rng(2)
    contrastive = ContrastiveDistillationLoss(8, DIM, TEMPERATURE).double()
    seen = NOTHING
    for batch in range(6):  # 3 vectors a batch: the bank of 8 is full in the third and wraps around inside of one
        student, target = unit(draw, 3), unit(draw, 3)
        rows = [3 * batch + each for each in range(3)]
        found = contrastive(given(student, target, rows)).item()
        assert found == pytest.approx(equation_5(student, target, seen[-8:]))
        seen = np.vstack([seen, target])
    held = {tuple(row) for row in contrastive.bank.numpy().round(9)}
    assert held == {tuple(row) for row in seen[-8:].round(9)}
    assert sorted(contrastive.rows.tolist()) == list(range(10, 18))


def test_a_batch_larger_than_the_bank_leaves_its_last_vectors() -> None:
    draw = np.random.default_rng(3)
    contrastive = ContrastiveDistillationLoss(4, DIM, TEMPERATURE).double()
    contrastive(given(unit(draw, 7), unit(draw, 7)))
    assert sorted(contrastive.rows.tolist()) == [3, 4, 5, 6]


def test_a_repeated_sentence_is_not_a_negative_of_itself() -> None:
    draw = np.random.default_rng(4)
    contrastive = ContrastiveDistillationLoss(6, DIM, TEMPERATURE).double()
    student, target = unit(draw, 6), unit(draw, 6)
    contrastive(given(student, target))
    found = contrastive(given(student, target)).item()
    in_batch = np.exp(student @ target.T / TEMPERATURE)
    others = [np.exp(student[row] @ np.delete(target, row, axis=0).T / TEMPERATURE).sum() for row in range(6)]
    expected = np.mean([-np.log(in_batch[row, row] / (in_batch[row].sum() + others[row])) for row in range(6)])
    assert found == pytest.approx(expected)


def test_the_gradient_reaches_the_student_alone() -> None:
    draw = np.random.default_rng(5)
    contrastive = ContrastiveDistillationLoss(8, DIM, TEMPERATURE).double()
    for _ in range(2):
        inputs = given(unit(draw, 3), unit(draw, 3))
        inputs = replace(inputs, student=inputs.student.requires_grad_(), target=inputs.target.requires_grad_())
        contrastive(inputs).backward()
        assert inputs.student.grad is not None
    assert not contrastive.bank.requires_grad
    assert not list(contrastive.parameters())


def test_a_restored_bank_continues_where_it_was() -> None:
    draw = np.random.default_rng(6)
    first, second = (ContrastiveDistillationLoss(5, DIM, TEMPERATURE).double() for _ in range(2))
    first(given(unit(draw, 3), unit(draw, 3)))
    second.load_state_dict(first.state_dict())
    batch = given(unit(draw, 4), unit(draw, 4), [7, 8, 9, 10])
    assert first(batch).item() == second(batch).item()
    assert torch.equal(first.bank, second.bank)


class _Narrow(torch.nn.Module):
    def __init__(self, vectors: Matrix) -> None:
        super().__init__()
        self.vectors = torch.tensor(vectors)

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"sentence_embedding": self.vectors[features["input_ids"][:, 0]].float()}


def test_a_narrower_student_is_projected_as_in_equation_6_and_the_projection_learns() -> None:
    draw = np.random.default_rng(7)
    student, target, weights = draw.normal(size=(9, 3)), unit(draw, 9).astype(np.float16), draw.normal(size=(DIM, 3))
    matrix = torch.nn.Linear(3, DIM, bias=False)
    matrix.load_state_dict({"weight": torch.tensor(weights)})
    name = "contrastive_distillation"
    losses = {name: ContrastiveDistillationLoss(8, DIM, TEMPERATURE)}
    loss = DistillationLoss(
        _Narrow(student), target, None, losses, {name: 1.0}, normalized=False, student_projection=matrix
    )
    mapped, wanted = student @ weights.T, target.astype(np.float64)
    mapped, wanted = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (mapped, wanted))
    for rows, bank in ((slice(0, 4), NOTHING), (slice(4, 9), wanted[:4])):
        ids = torch.arange(9)[rows, None]
        found = loss([{"input_ids": ids, "attention_mask": torch.ones_like(ids)}], ids[:, 0])[name]
        assert found.item() == pytest.approx(equation_5(mapped[rows], wanted[rows], bank), rel=1e-5)
    found.backward()
    assert matrix.weight.grad is not None
    assert matrix.weight.grad.abs().sum() > 0
