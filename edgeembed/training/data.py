"""The data that the stages of a recipe train on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from datasets import Dataset

from edgeembed.corpus.pairs import SentencePairs, expect_hard_negatives, read_pairs, read_sts
from edgeembed.corpus.parallel import ParallelText
from edgeembed.embeddings.fingerprint import text_fingerprint
from edgeembed.recipe.schema import Recipe
from edgeembed.recipe.stages import StageSettings


@dataclass(frozen=True)
class TrainingText:
    """Text that a student reads, and the sentence whose teacher embedding is the target of each text.

    Attributes:
        sentences: Distinct sentences, which the teacher encodes, sorted by length.
        texts: What the student reads, sorted by length: the corpus, and both sides of parallel text as often as an
            epoch has them.
        rows: For each text the index of its sentence, int64 (texts,): itself, or the sentence that it translates.
    """

    sentences: list[str]
    texts: list[str]
    rows: npt.NDArray[np.int64]


def build_training_text(sentences: Sequence[str], parallel: ParallelText | None = None) -> TrainingText:
    """Return the text that a student reads, with the teacher's embedding of the source as target of both sides.

    Args:
        sentences: Distinct sentences without translations.
        parallel: Sentences with translations (Xayn, equation 2).
    """
    pairs = list(zip(parallel.sources, parallel.translations, strict=True)) if parallel else []
    encoded = sorted(dict.fromkeys([*sentences, *(source for source, _ in pairs)]), key=len)
    row_of = {sentence: row for row, sentence in enumerate(encoded)}
    read = [(sentence, row_of[sentence]) for sentence in sentences]
    read += [(text, row_of[pair[0]]) for pair in pairs for text in pair]
    read.sort(key=lambda each: len(each[0]))
    return TrainingText(encoded, [text for text, _ in read], np.array([row for _, row in read], dtype=np.int64))


@dataclass(frozen=True)
class LabeledData:
    """Data with human labels.

    Attributes:
        pairs: Labeled pairs by column, as `read_pairs` returns them; None without.
        scored: Files of scored pairs.
        dev: The development set; None without.
    """

    pairs: dict[str, list[str]] | None
    scored: tuple[SentencePairs, ...]
    dev: SentencePairs | None

    @classmethod
    def read(
        cls,
        recipe: Recipe,
        pairs: Sequence[str | Path],
        scored: Sequence[str | Path],
        dev: str | Path | None,
    ) -> "LabeledData":
        """Read the labeled data of a recipe.

        Args:
            recipe: The recipe.
            pairs: Files of labeled pairs, as `read_pairs` takes them.
            scored: Files of scored pairs, as `read_sts` takes them.
            dev: A file of scored pairs, as `read_sts` takes it.

        Raises:
            InputError: If a file cannot be read, or lacks something that a stage learns from.
        """
        labeled = read_pairs(pairs) if pairs else None
        if labeled is not None and any(stage.uses_hard_negatives for stage in recipe.stages):
            expect_hard_negatives(labeled, pairs)
        scored_pairs = tuple(read_sts(Path(file)) for file in scored)
        for stage in recipe.stages:
            _labels(stage, scored_pairs)  # checks the scores
        return cls(labeled, scored_pairs, None if dev is None else read_sts(Path(dev)))

    def texts(self) -> list[str]:
        """Return the distinct texts of the pairs to train on."""
        labeled = (text for column in (self.pairs or {}).values() for text in column)
        scored = (text for pairs in self.scored for text in [*pairs.first, *pairs.second])
        return list(dict.fromkeys([*labeled, *scored]))

    def fingerprint(self) -> list[Any]:
        """Return a fingerprint of the data that JSON can hold."""
        scored = [*self.scored, *([self.dev] if self.dev else [])]
        return [
            [text_fingerprint(texts) for texts in (self.pairs or {}).values()],
            [[text_fingerprint([*pairs.first, *pairs.second]), pairs.scores.tolist()] for pairs in scored],
            self.dev is not None,
        ]


def stage_dataset(stage: StageSettings, text: TrainingText, labeled: LabeledData) -> Dataset:
    """Return the dataset of a stage, with the columns that its loss reads.

    Args:
        stage: The stage.
        text: Unlabeled text. The label of each text is the row of its target in the teacher cache.
        labeled: Labeled and scored pairs.
    """
    if stage.uses_pairs:
        return Dataset.from_dict(labeled.pairs or {})
    if stage.uses_scored_pairs:
        first = [sentence for pairs in labeled.scored for sentence in pairs.first]
        second = [sentence for pairs in labeled.scored for sentence in pairs.second]
        labels = np.concatenate(_labels(stage, labeled.scored))
        return Dataset.from_dict({"sentence1": first, "sentence2": second, "label": labels})
    return Dataset.from_dict({"sentence": text.texts, "label": text.rows})


def _labels(stage: StageSettings, scored: Sequence[SentencePairs]) -> list[npt.NDArray[np.float32]]:
    """Return the scores of each file as the stage's loss reads them; none if it reads no scored pairs."""
    if not stage.uses_scored_pairs:
        return []
    (loss,) = stage.losses.values()
    return [loss.scores_as_labels(pairs) for pairs in scored]
