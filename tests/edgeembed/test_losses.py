from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from edgeembed_exporters.reduction.pca_head import Projection
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from edgeembed.losses.base import LOSSES, TeacherTargets
from edgeembed.losses.cosine import Cosine
from edgeembed.losses.factory import build_loss
from edgeembed.losses.hidden_states import HiddenStatesLoss
from edgeembed.losses.layer_loss import teacher_layers
from edgeembed.losses.mse import MSE
from edgeembed.losses.similarity import Similarity
from edgeembed.losses.token_embedding import TokenEmbeddingLoss
from edgeembed.losses.weighted_sum import DistillationLoss
from edgeembed.models import load_model
from edgeembed.recipe.loading import load_recipe
from edgeembed.recipe.stages import StageSettings
from edgeembed.students.initialization import build_transformer
from edgeembed.students.transformer import FactorizedEmbedding
from edgeembed.validation import validate

from .loss_inputs import LayeredTeacher, inputs, layered, matrices_of, random_inputs  # tests are not a package


def stage(loss: str, **settings: float) -> StageSettings:
    """Return a stage with one loss."""
    return validate(StageSettings, {"losses": {loss: settings}})


def test_mse_is_simtdes_equation_4() -> None:
    given, student, target = random_inputs()
    assert float(MSE().compute(given)) == pytest.approx(np.mean((student - target) ** 2), rel=1e-6)


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
    build_loss(student, stage("hidden_states").losses, targets)
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


def test_the_table_of_losses_is_what_the_classes_declare() -> None:
    page = (Path(__file__).parents[2] / "docs" / "losses.md").read_text(encoding="utf-8")
    for name, loss in LOSSES.items():
        settings = ", ".join(f"`{field}`" for field in loss.model_fields if field != "weight")
        row = f"| `{name}` | {(loss.__doc__ or '').splitlines()[0]} | {settings} | {loss.source} |"
        assert row in page or not loss.__module__.startswith("edgeembed.")


@pytest.mark.parametrize("name", list(LOSSES))
def test_each_loss_says_what_it_minimizes_and_where_it_comes_from(name: str) -> None:
    assert (LOSSES[name].__doc__ or "").splitlines()[0].endswith(".")
    assert LOSSES[name].source


def test_losses_are_added_up_in_the_order_of_the_recipe() -> None:
    given: list[dict[str, Any]] = [{"mse": 1.0, "cosine": 0.5}, {"cosine": 0.5, "mse": 1.0}]
    stages = [StageSettings(losses=losses) for losses in given]
    assert [list(stage.losses) for stage in stages] == [["mse", "cosine"], ["cosine", "mse"]]
    assert list(stages[0].model_dump()["losses"].items()) == [("mse", 1.0), ("cosine", 0.5)]
