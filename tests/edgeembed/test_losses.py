from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
import torch
from edgeembed_exporters.reduction.pca_head import Projection
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from edgeembed.losses.base import LossInputs, TeacherTargets
from edgeembed.losses.cosine import Cosine
from edgeembed.losses.factory import build_loss
from edgeembed.losses.hidden_states import HiddenStatesLoss
from edgeembed.losses.kl import KL
from edgeembed.losses.layer_loss import teacher_layers
from edgeembed.losses.mae import MAE
from edgeembed.losses.mse import MSE
from edgeembed.losses.patient import PatientLoss
from edgeembed.losses.similarity import Similarity
from edgeembed.losses.similarity_mae import SimilarityMAE
from edgeembed.losses.token_embedding import TokenEmbeddingLoss
from edgeembed.losses.weighted_sum import DistillationLoss
from edgeembed.models import load_model
from edgeembed.recipe.loading import load_recipe
from edgeembed.recipe.stages import StageSettings
from edgeembed.students.initialization import build_transformer
from edgeembed.students.transformer import FactorizedEmbedding
from edgeembed.validation import validate


def inputs(student: torch.Tensor, target: torch.Tensor, teacher: torch.Tensor | None = None) -> LossInputs:
    ids = torch.tensor([[2, 5, 3, 0], [2, 6, 5, 3]])
    teacher = target if teacher is None else teacher
    rows = torch.arange(len(student))
    return LossInputs(student, target, teacher, rows, ids, (ids > 0).long(), student_raw=student, target_raw=target)


def stage(loss: str, **settings: float) -> StageSettings:
    """Return a stage with one loss."""
    return validate(StageSettings, {"losses": {loss: settings}})


def random_inputs(batch: int = 7, dim: int = 5) -> tuple[LossInputs, "np.ndarray", "np.ndarray"]:
    """Return inputs that are not normalized, and the same embeddings in float64."""
    draw = np.random.default_rng(4)
    student, target = (draw.normal(size=(batch, dim)) for _ in range(2))
    return (
        inputs(torch.tensor(student, dtype=torch.float32), torch.tensor(target, dtype=torch.float32)),
        student,
        target,
    )


def test_mse_is_simtdes_equation_4_and_mae_takes_the_absolute_error() -> None:
    given, student, target = random_inputs()
    assert float(MSE().compute(given)) == pytest.approx(np.mean((student - target) ** 2), rel=1e-6)
    assert float(MAE().compute(given)) == pytest.approx(np.mean(np.abs(student - target)), rel=1e-6)


def test_mse_times_the_dimensions_is_hpds_equation_2() -> None:
    given, student, target = random_inputs()
    equation_2 = np.mean([np.linalg.norm(ours - theirs) ** 2 for ours, theirs in zip(student, target, strict=True)])
    assert student.shape[1] * float(MSE().compute(given)) == pytest.approx(equation_2, rel=1e-6)


@pytest.mark.parametrize("loss", ["contrastive", "gold_similarity", "triplet", "cosine"])
def test_a_stage_after_one_on_layers_computes_no_hidden_states(teacher_folder: Path, loss: str) -> None:
    teacher = load_model(str(teacher_folder))
    recipe = load_recipe("compact", ["vocabulary.kind=teacher", "student.token_dim=8", "student.max_seq_length=32"])
    student = SentenceTransformer(
        modules=[
            build_transformer(
                teacher,
                teacher.tokenizer,
                torch.zeros(len(teacher.tokenizer), 32),
                torch.ones(len(teacher.tokenizer)),
                recipe.student.replace(table_init="random"),
            ),
            Pooling(32, "mean"),
        ],
        device="cpu",
    )
    targets = TeacherTargets(np.zeros((4, 32), np.float16), None, torch.zeros(0), teacher, np.zeros(4, dtype=np.int64))
    build_loss(student, stage("patient").losses, targets)
    assert student[0].output_hidden_states
    build_loss(student, stage(loss).losses, targets if loss == "cosine" else None)
    assert not student[0].output_hidden_states


def test_the_target_table_is_moved_to_the_device_once() -> None:
    moves = []

    class Table(torch.Tensor):
        def to(self, *where: object, **_: object) -> torch.Tensor:
            moves.append(where)
            return torch.zeros(8, 4)

    given = inputs(torch.ones(2, 4), torch.ones(2, 4))
    loss = TokenEmbeddingLoss(torch.nn.Embedding(8, 4), torch.zeros(8, 4).as_subclass(Table))
    for _ in range(3):
        loss(given)
    assert len(moves) == 1


def test_kl_is_the_divergence_of_softmaxed_vectors() -> None:
    given, student, target = random_inputs()
    ours, theirs = (np.exp(each) / np.exp(each).sum(axis=1, keepdims=True) for each in (student, target))
    assert float(KL().compute(given)) == pytest.approx(np.mean((theirs * np.log(theirs / ours)).sum(axis=1)), rel=1e-5)


def test_similarity_mae_is_the_mean_absolute_difference_of_all_pairs() -> None:
    given, student, target = random_inputs()
    expected = np.mean(np.abs(student @ student.T - target @ target.T))
    assert float(SimilarityMAE().compute(given)) == pytest.approx(expected, rel=1e-5)


def test_cosine_is_zero_on_the_target_one_across_it_two_against_it() -> None:
    east, north = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    values = [float(Cosine().compute(inputs(east, other))) for other in (east, north, -east)]
    assert values == pytest.approx([0, 1, 2])


def test_similarity_compares_the_pairs_of_a_batch_by_hand() -> None:
    student = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    teacher = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    # The two off-diagonal cosines are 0 against 0.6, the two diagonal ones agree: (2 * 0.36) / 4.
    assert float(Similarity().compute(inputs(student, student, teacher))) == pytest.approx(0.18)


def test_similarity_is_invariant_to_rotation() -> None:
    vectors = nn.functional.normalize(torch.randn(6, 4, generator=torch.Generator().manual_seed(0)))
    rotation, _ = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(1)))
    assert float(Similarity().compute(inputs(vectors @ rotation, vectors, vectors))) == pytest.approx(0, abs=1e-12)


def test_token_embedding_compares_distinct_tokens_and_leaves_out_padding() -> None:
    embedding = FactorizedEmbedding(8, 2, 3)
    targets = torch.zeros(8, 3)
    with torch.no_grad():
        rows = embedding(torch.tensor([2, 3, 5, 6]))
    value = TokenEmbeddingLoss(embedding, targets)(inputs(torch.ones(2, 1), torch.ones(2, 1)))
    assert value.item() == pytest.approx(rows.square().mean().item(), rel=1e-6)


class FixedStudent(nn.Module):
    """A student with fixed embeddings."""

    def __init__(self, vectors: torch.Tensor) -> None:
        super().__init__()
        self.vectors = nn.Parameter(vectors)

    def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {**features, "sentence_embedding": self.vectors}


def test_the_loss_reads_the_rows_that_the_labels_name_projects_and_weighs_them() -> None:
    cache = np.array([[9, 9, 9], [3, 1, 7], [1, 3, 7]], dtype=np.float16)
    projection = Projection(np.array([1, 1, 0], np.float32), np.eye(3, 2, dtype=np.float32), 1.0)
    student = FixedStudent(torch.tensor([[0.0, 2.0], [0.0, 5.0]]))
    loss = DistillationLoss(student, cache, projection, {"cosine": Cosine().compute}, {"cosine": 10.0})
    features = {
        "input_ids": torch.ones(2, 3, dtype=torch.long),
        "attention_mask": torch.ones(2, 3, dtype=torch.long),
    }
    values = loss([features], torch.tensor([1, 2]))
    # Rows 1 and 2 project to (2, 0) and (0, 2): cosines 0 and 1.
    assert values["cosine"].item() == pytest.approx(10 * 0.5)
    values["cosine"].backward()
    assert student.vectors.grad is not None


def test_the_loss_of_simtde_is_equation_5_on_vectors_of_any_length() -> None:
    draw = np.random.default_rng(5)
    student, teacher = draw.normal(size=(2, 4, 3))
    table, matrix, wanted = draw.normal(size=(8, 2)), draw.normal(size=(3, 2)), draw.normal(size=(8, 3))
    ids, alpha = np.array([[2, 5, 3], [2, 6, 3], [2, 7, 3], [2, 4, 3]]), 0.5
    embedding = FactorizedEmbedding(8, 2, 3)
    with torch.no_grad():
        embedding.table.weight.copy_(torch.tensor(table))
        embedding.projection.weight.copy_(torch.tensor(matrix))
    loss = DistillationLoss(
        FixedStudent(torch.tensor(student, dtype=torch.float32)),
        teacher.astype(np.float16),
        None,
        {
            "token_embedding": TokenEmbeddingLoss(embedding, torch.tensor(wanted, dtype=torch.float32)),
            "mse": MSE().compute,
        },
        {"token_embedding": alpha, "mse": 1 - alpha},
        normalized=False,
    )
    features = {"input_ids": torch.tensor(ids), "attention_mask": torch.ones(4, 3, dtype=torch.long)}
    value = sum(each.item() for each in loss([features], torch.arange(4)).values())
    tokens = np.unique(ids)
    token_loss = np.mean(((table @ matrix.T)[tokens] - wanted[tokens]) ** 2)
    sentence_loss = np.mean((student - teacher.astype(np.float16)) ** 2)
    assert value == pytest.approx(alpha * token_loss + (1 - alpha) * sentence_loss, rel=1e-5)


def test_targets_have_unit_length_where_the_student_does() -> None:
    cache = np.array([[3, 4]], dtype=np.float16)
    student = FixedStudent(torch.tensor([[0.6, 0.8]]))
    features = {"input_ids": torch.ones(1, 3, dtype=torch.long), "attention_mask": torch.ones(1, 3, dtype=torch.long)}
    values = []
    for unit in (True, False):
        loss = DistillationLoss(student, cache, None, {"mse": MSE().compute}, {"mse": 1.0}, normalized=unit)
        values.append(loss([features], torch.tensor([0]))["mse"].item())
    assert values == pytest.approx([0, (2.4**2 + 3.2**2) / 2], abs=1e-5)


class LayeredTeacher(nn.Module):
    """A teacher with fixed hidden states."""

    def __init__(self, states: tuple[torch.Tensor, ...]) -> None:
        super().__init__()
        self.states = states

    def forward(self, **_: object) -> SimpleNamespace:
        return SimpleNamespace(hidden_states=self.states)


def layered(width: int) -> tuple[LossInputs, list["np.ndarray"], list["np.ndarray"]]:
    """Return inputs with a student of two layers and a teacher of four of width 3, and their states in float64."""
    draw = np.random.default_rng(6)
    ours = [draw.normal(size=(2, 4, width)) for _ in range(3)]
    theirs = [draw.normal(size=(2, 4, 3)) for _ in range(5)]
    states = tuple(torch.tensor(each, dtype=torch.float32) for each in ours)
    return replace(inputs(torch.ones(2, 1), torch.ones(2, 1)), hidden_states=states), ours, theirs


def matrices_of(loss: nn.Module, width: int) -> list["np.ndarray"]:
    return [np.eye(3)] * 2 if width == 3 else [each.detach().double().numpy() for each in loss.parameters()]


@pytest.mark.parametrize("width", [3, 2], ids=["as wide", "through learnable matrices"])
def test_hidden_states_compares_layers_without_padding(width: int) -> None:
    given, ours, theirs = layered(width)
    loss = HiddenStatesLoss(LayeredTeacher(tuple(map(torch.tensor, theirs))), (3, 4), (width, 3))
    mask = given.attention_mask.bool().numpy()
    errors = [
        np.mean((ours[layer] @ matrix.T - theirs[wanted])[mask] ** 2)
        for layer, wanted, matrix in zip((1, 2), (3, 4), matrices_of(loss, width), strict=True)
    ]
    assert loss(given).item() == pytest.approx(np.mean(errors), rel=1e-5)
    assert len(list(loss.parameters())) == (0 if width == 3 else 2)


@pytest.mark.parametrize("width", [3, 2], ids=["as wide", "through learnable matrices"])
@pytest.mark.parametrize("modes", [("cls", "cls"), ("mean", "mean"), ("cls", "mean")])
def test_patient_compares_the_directions_of_pooled_states_and_leaves_out_the_last_layer(
    width: int, modes: tuple[str, str]
) -> None:
    """PKD's equation 7 has first tokens; a mean-pooled model represents the sentence by the mean."""
    given, ours, theirs = layered(width)
    poolings = Pooling(width, modes[0]), Pooling(3, modes[1])
    loss = PatientLoss(LayeredTeacher(tuple(map(torch.tensor, theirs))), (2,), (width, 3), poolings)
    mask = given.attention_mask.numpy()[:, :, None]
    mine, other = (
        states[:, 0] if mode == "cls" else (states * mask).sum(axis=1) / mask.sum(axis=1)
        for states, mode in zip((ours[1], theirs[2]), modes, strict=True)
    )
    pair = mine @ matrices_of(loss, width)[0].T, other
    units = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in pair]
    assert loss(given).item() == pytest.approx(np.mean(((units[0] - units[1]) ** 2).sum(axis=1)), rel=1e-5)


@pytest.mark.parametrize(
    ("choice", "expected"), [("last", [3, 4, 5, 6]), ("spread", [2, 3, 4, 6])], ids=["PKD-Last", "PKD-Skip"]
)
def test_compared_layers_end_at_the_teachers_last(choice: Literal["last", "spread"], expected: list[int]) -> None:
    assert teacher_layers(4, 6, choice) == expected
    assert teacher_layers(3, 6, "spread") == [2, 4, 6]


class Passing(SentenceTransformer):  # type: ignore[misc]  # sentence-transformers carries no types
    """A model that returns its inputs."""

    def forward(self, features: dict[str, torch.Tensor], **_: object) -> dict[str, torch.Tensor]:
        return features


def test_contrastive_is_hpds_equation_1_and_distilcses_equation_7() -> None:
    draw = np.random.default_rng(7)
    anchors, positives, negatives = draw.normal(size=(3, 6, 4))
    temperature = 0.05

    def similarity_of(one: "np.ndarray", other: "np.ndarray") -> "np.ndarray":
        norms = np.linalg.norm(one, axis=1)[:, None] * np.linalg.norm(other, axis=1)
        return np.asarray(one @ other.T / norms / temperature)

    to_positives, to_negatives = similarity_of(anchors, positives), similarity_of(anchors, negatives)
    total = np.exp(to_positives).sum(axis=1) + np.exp(to_negatives).sum(axis=1)
    expected = np.mean(-np.log(np.exp(np.diag(to_positives)) / total))
    settings = stage("contrastive", temperature=temperature).losses
    loss = build_loss(Passing(modules=[nn.Identity()], device="cpu"), settings, None)
    features = [{"sentence_embedding": torch.tensor(each)} for each in (anchors, positives, negatives)]
    found = loss(features, torch.zeros(6))
    assert found.item() == pytest.approx(expected, rel=1e-6)
