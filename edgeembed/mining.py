"""Hard negatives: texts that lie near to another one in the teacher's eyes, and are not what is meant."""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from datasets import Dataset
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import mine_hard_negatives

from edgeembed.corpus.pairs import COLUMNS


@dataclass(frozen=True)
class Triplets:
    """Pairs with their hard negatives.

    Attributes:
        texts: The texts by column, row by row, as `read_pairs` gives them.
        pairs: Distinct pairs that negatives were looked for.
        positive_cosine: Mean cosine of the anchors and positives that are left, to the teacher.
        negative_cosine: Mean cosine of the anchors and their hard negatives.
    """

    texts: dict[str, list[str]]
    pairs: int
    positive_cosine: float
    negative_cosine: float

    def __len__(self) -> int:
        """Count the triplets."""
        return len(self.texts[COLUMNS[0]])


def mine_triplets(
    pairs: Mapping[str, Sequence[str]], teacher: SentenceTransformer, *, margin: float, corpus: Sequence[str] = ()
) -> Triplets:
    """Give each anchor as hard negative the nearest text that is not its own, in the teacher's eyes.

    One that is nearly as near as the anchor's own positive may well mean the same, and is passed over (Moreira et al.
    2024, "NV-Retriever", section 3.2: TopK-PercPos).

    Args:
        pairs: `anchor` and `positive`, as `read_pairs` gives them; hard negatives that are there already are ignored.
        teacher: The model that judges what lies near.
        margin: How much smaller than the positive's a negative's cosine must be, as a share of it; 0 to 1.
        corpus: Texts that may be hard negatives too, such as passages; without, the positives of other anchors are.

    Returns:
        The triplets; pairs without such a negative are left out.

    Raises:
        InputError: If no pair has a hard negative.
    """
    names = COLUMNS[:2]
    distinct = list(dict.fromkeys(zip(*(pairs[name] for name in names), strict=True)))
    dataset = Dataset.from_dict(dict(zip(names, map(list, zip(*distinct, strict=True)), strict=True)))
    # It prints a statistic to stdout, which belongs to results; its progress bars and warnings are on stderr already.
    with contextlib.redirect_stdout(sys.stderr):
        mined = mine_hard_negatives(
            dataset,
            teacher,
            corpus=list(corpus) or None,
            relative_margin=margin,
            num_negatives=1,
            use_faiss=True,
            output_scores=True,
            verbose=False,
            batch_size=128,
        )
    if not len(mined):
        raise InputError(
            f"none of {len(distinct):,} pairs has a hard negative at a margin of {margin:g}; expected more pairs "
            "of one domain, a --corpus of it, or a smaller margin"
        )
    cosines = np.asarray(mined["scores"], dtype=np.float64)
    texts = {name: list(mined[source]) for name, source in zip(COLUMNS, (*names, "negative"), strict=True)}
    return Triplets(texts, len(distinct), *cosines.mean(axis=0).round(4).tolist())
