"""Batches in which sentences are together with their nearest neighbors."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from datasets import Dataset
from edgeembed_runtime.errors import InputError

from edgeembed.distillation import distill
from edgeembed.recipe.loading import load_recipe
from edgeembed.training.batches import NeighborSampler
from edgeembed.training.neighbors import nearest_neighbors


def unit_vectors(rows: int, dimension: int = 16) -> npt.NDArray[np.float32]:
    drawn = np.random.default_rng(0).normal(size=(rows, dimension)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def sampler(neighbors: npt.NDArray[np.int64], *, by_length: bool = False, drop_last: bool = False) -> NeighborSampler:
    return NeighborSampler(
        Dataset.from_dict({"sentence": ["x"] * len(neighbors)}),
        batch_size=8,
        drop_last=drop_last,
        generator=torch.Generator().manual_seed(1),
        neighbors=neighbors,
        count=3,
        by_length=by_length,
    )


def quartets(rows: int) -> npt.NDArray[np.int64]:
    """Return neighbors such that rows are neighbors of each other in groups of four that are far apart in length."""
    groups = np.arange(rows).reshape(4, -1).T
    return np.array([[other for other in groups[row % (rows // 4)] if other != row] for row in range(rows)])


def test_neighbors_are_the_most_similar_other_rows() -> None:
    vectors = unit_vectors(200)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    assert np.array_equal(nearest_neighbors(vectors, 2), np.argsort(-cosines, axis=1)[:, :8])


def test_copies_of_a_row_are_its_neighbors_but_not_itself() -> None:
    vectors = np.repeat(unit_vectors(5), 3, axis=0)
    neighbors = nearest_neighbors(vectors, 1)
    for row, found in enumerate(neighbors):
        assert row not in found
        assert {int(each) // 3 for each in found[:2]} == {row // 3}


def test_there_are_no_more_neighbors_than_other_rows() -> None:
    assert nearest_neighbors(unit_vectors(3), 5).shape == (3, 2)


def test_a_large_corpus_has_nearly_the_same_neighbors_by_ivf() -> None:
    centers = np.repeat(unit_vectors(1500), 14, axis=0)
    vectors = centers + 0.05 * unit_vectors(len(centers))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    neighbors = nearest_neighbors(vectors, 1)
    same_center = neighbors // 14 == np.arange(len(vectors))[:, None] // 14
    assert same_center.mean() > 0.95


@pytest.mark.parametrize("by_length", [False, True])
def test_an_epoch_has_each_sentence_once_and_neighbors_together_in_a_new_order(by_length: bool) -> None:
    batches = sampler(quartets(400), by_length=by_length)
    first = list(batches)
    batches.set_epoch(1)
    second = list(batches)
    assert sorted(row for batch in first for row in batch) == list(range(400))
    assert first != second
    together = sum(len(batch) - len({row % 100 for row in batch}) for batch in first)
    assert together == 300  # two whole quartets in each batch of eight


def test_groups_of_a_batch_are_of_similar_length_on_request() -> None:
    neighbors = np.arange(400).reshape(-1, 4).repeat(4, axis=0)
    spread = [np.mean([max(batch) - min(batch) for batch in sampler(neighbors, by_length=each)]) for each in (1, 0)]
    assert spread[0] < spread[1] / 4


def test_an_incomplete_batch_is_left_out_on_request() -> None:
    assert sum(map(len, sampler(quartets(12), drop_last=True))) == 8


def test_a_stage_without_a_teacher_has_no_neighbors() -> None:
    with pytest.raises(InputError, match="neighbors is 2; expected 0 with the loss contrastive"):
        load_recipe("simcse", ["stages.neighbors=2"])


def test_a_student_learns_from_batches_of_neighbors(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    settings = [f'teacher="{teacher_folder}"', "vocabulary.kind=teacher", "student.layers=1", "student.token_dim=8"]
    settings += ["student.max_seq_length=32", "head.dim=6", "stages.batch_size=32", "stages.neighbors=3"]
    recipe = load_recipe("compact", [*settings, "stages.losses.similarity_kl.temperature=0.1", "corpus.heldout=0"])
    report = distill(recipe, sentences, tmp_path / "student", cache=tmp_path / "cache")
    assert np.isfinite(report.losses[0])
