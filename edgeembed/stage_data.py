"""What the stages of a recipe read: text whose vectors a teacher gives, and labelled pairs."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from datasets import Dataset
from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer

from edgeembed.corpus.pairs import expect_hard_negatives, read_pairs
from edgeembed.corpus.parallel import ParallelText
from edgeembed.evaluation.sts import SentencePairs, read_sts
from edgeembed.recipe import Recipe
from edgeembed.stage_settings import StageSettings
from edgeembed.teacher import text_key


@dataclass(frozen=True)
class LearningText:
    """Text that a student learns from, and the sentence whose vector each text is to have.

    Attributes:
        sentences: Distinct sentences, which the teacher encodes, shortest first.
        texts: What the student reads, shortest first: those of the corpus, and both sides of parallel text as often as
            an epoch has them.
        rows: For each text the number of its sentence, int64 (texts,): its own, or that which it translates.
    """

    sentences: list[str]
    texts: list[str]
    rows: npt.NDArray[np.int64]


def learning_text(sentences: Sequence[str], parallel: ParallelText | None = None) -> LearningText:
    """Give what a student learns from: student(x) and student(t) are both drawn to teacher(x) (Xayn, equation 2).

    Args:
        sentences: Distinct sentences without translations.
        parallel: Sentences with translations.
    """
    pairs = list(zip(parallel.sources, parallel.translations, strict=True)) if parallel else []
    encoded = sorted(dict.fromkeys([*sentences, *(source for source, _ in pairs)]), key=len)
    row_of = {sentence: row for row, sentence in enumerate(encoded)}
    read = [(sentence, row_of[sentence]) for sentence in sentences]
    read += [(text, row_of[pair[0]]) for pair in pairs for text in pair]
    read.sort(key=lambda each: len(each[0]))
    return LearningText(encoded, [text for text, _ in read], np.array([row for _, row in read], dtype=np.int64))


@dataclass(frozen=True)
class LabelledData:
    """What people labelled.

    Attributes:
        pairs: Labelled pairs by column, as `read_pairs` gives them; None without.
        scored: Files of scored pairs.
        dev: The development set; None without.
    """

    pairs: dict[str, list[str]] | None
    scored: tuple[SentencePairs, ...]
    dev: SentencePairs | None

    @classmethod
    def read(
        cls, recipe: Recipe, pairs: Sequence[str | Path], scored: Sequence[str | Path], dev: Path | None
    ) -> "LabelledData":
        """Read the files that a recipe was given.

        Raises:
            InputError: If one cannot be read, or lacks what a stage learns from.
        """
        labelled = read_pairs(pairs) if pairs else None
        if labelled is not None and any(stage.reads_triplets for stage in recipe.stages):
            expect_hard_negatives(labelled, pairs)
        given = tuple(read_sts(Path(file)) for file in scored)
        for stage in recipe.stages:
            if stage.reads_scored:
                _check_scores(given, stage.highest_score)
        return cls(labelled, given, None if dev is None else read_sts(dev))

    def texts(self) -> list[str]:
        """Give the distinct texts of the pairs that are learned from."""
        labelled = (text for column in (self.pairs or {}).values() for text in column)
        scored = (text for pairs in self.scored for text in [*pairs.first, *pairs.second])
        return list(dict.fromkeys([*labelled, *scored]))

    def identity(self) -> list[Any]:
        """Give what tells this data from other, ready for JSON."""
        scored = [*self.scored, *([self.dev] if self.dev else [])]
        return [
            [text_key(texts) for texts in (self.pairs or {}).values()],
            [[text_key([*pairs.first, *pairs.second]), pairs.scores.tolist()] for pairs in scored],
            self.dev is not None,
        ]


def stage_dataset(stage: StageSettings, text: LearningText, labelled: LabelledData) -> Dataset:
    """Give what a stage's loss reads, as the trainer takes it.

    Args:
        stage: The stage.
        text: Unlabelled text; the label of each is its row in the teacher cache.
        labelled: What people labelled.
    """
    if stage.reads_pairs:
        return Dataset.from_dict(labelled.pairs or {})
    if stage.reads_scored:
        first = [sentence for pairs in labelled.scored for sentence in pairs.first]
        second = [sentence for pairs in labelled.scored for sentence in pairs.second]
        scores = np.concatenate([pairs.scores for pairs in labelled.scored]) / stage.highest_score
        return Dataset.from_dict({"sentence1": first, "sentence2": second, "label": scores.astype(np.float32)})
    return Dataset.from_dict({"sentence": text.texts, "label": text.rows})


def run_key(
    recipe: Recipe,
    tokenizer: Tokenizer,
    text: LearningText,
    domains: npt.NDArray[np.int64],
    labelled: LabelledData,
    seed: int,
) -> str:
    """Identify a run, in 16 hexadecimal digits, by all that decides its weights on a machine."""
    vocabulary = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
    drawn = [text_key(text.sentences), text_key(text.texts), _digest(text.rows), _digest(domains)]
    content = json.dumps([recipe.to_dict(), vocabulary, drawn, labelled.identity(), seed], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _digest(numbers: npt.NDArray[np.int64]) -> str:
    return hashlib.sha256(numbers.tobytes()).hexdigest()


def _check_scores(given: Sequence[SentencePairs], highest: float) -> None:
    for pairs in given:
        low, high = float(pairs.scores.min()), float(pairs.scores.max())
        if low < 0 or high > highest:
            raise InputError(
                f"{pairs.name} has scores from {low:g} to {high:g}; expected 0 to {highest:g}: set "
                "stages.highest_score to the score of pairs that mean the same"
            )
