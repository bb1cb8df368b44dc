"""Batches of a stage: which sentences are in them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers.base.sampler import DefaultBatchSampler

_BATCHES_PER_GROUP = 50


class LengthGroupedSampler(DefaultBatchSampler):  # type: ignore[misc]  # sentence-transformers carries no types
    """Sample batches of sentences of similar length in random order, which minimizes padding.

    The dataset must be sorted by length. Each epoch shuffles all sentences, cuts them into groups of fifty batches,
    sorts each group, cuts it into batches, and shuffles the batches.

    Args:
        dataset: The sentences, sorted by length.
        batch_size: Sentences of a batch.
        drop_last: Whether to leave out an incomplete batch.
        generator: Its seed decides the order of every epoch; the trainer passes a generator with its own seed.
    """

    def __init__(
        self, dataset: Dataset, batch_size: int, drop_last: bool, generator: torch.Generator, **_: Any
    ) -> None:
        super().__init__(range(len(dataset)), batch_size=batch_size, drop_last=drop_last)
        self.seed = generator.initial_seed()

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng((self.seed, self.epoch))
        shuffled = random.permutation(len(self.sampler))
        group = self.batch_size * _BATCHES_PER_GROUP
        batches: list[list[int]] = []
        for first in range(0, len(shuffled), group):
            rows = np.sort(shuffled[first : first + group])
            batches += [rows[at : at + self.batch_size].tolist() for at in range(0, len(rows), self.batch_size)]
        if self.drop_last:
            batches = [batch for batch in batches if len(batch) == self.batch_size]
        for index in random.permutation(len(batches)):
            yield batches[index]
