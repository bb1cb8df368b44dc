"""Bigram shift: whether embeddings show that two adjacent words of a sentence are swapped (Conneau et al. 2018)."""

import os
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from edgeembed_bench.render.tables import Table
from edgeembed_runtime.errors import InputError

from edgeembed.corpus import gather_corpus
from edgeembed.evaluation.encoders import SentenceEncoder, encode_texts
from edgeembed.evaluation.intervals import scaled, share_interval
from edgeembed.evaluation.layout import Columns, detail, first_scores, table, value
from edgeembed.evaluation.model_evaluation import Rows
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import TASKS, EvaluationTask, PathLike
from edgeembed.evaluation.tasks.sts import pairwise_cosine

METRIC = "bigram shift accuracy x100"
SWAPPED, SHUFFLED = "mean cosine, two words swapped", "mean cosine, all words shuffled"
_MAX_SENTENCES, _MIN_SENTENCES = 6000, 300
_MIN_WORDS, _MAX_WORDS = 5, 30
_SEED = 1111  # that of SentEval


@dataclass(frozen=True)
class WordOrderSet:
    """Sentences, and the same sentences with their words in another order.

    Attributes:
        name: Name of the source with its folder's.
        original: The sentences.
        swapped: The sentences with two adjacent words swapped.
        shuffled: The sentences with all words in random order.
    """

    name: str
    original: tuple[str, ...]
    swapped: tuple[str, ...]
    shuffled: tuple[str, ...]


@TASKS.register("word-order")
class WordOrder(EvaluationTask):
    """Bigram shift: whether embeddings show that two words are swapped.

    Args:
        sources: Text sources, as `read_word_order` takes them.

    Raises:
        InputError: If a source cannot be read, or has too few sentences.
    """

    metavar = "TEXT"
    help = (
        "Text, in any corpus format: whether embeddings distinguish its sentences from those with two words swapped. "
        "Accuracy of bigram shift, where 50 is chance."
    )

    def __init__(self, *sources: PathLike) -> None:
        self.sets = [read_word_order(os.fspath(each)) for each in self.check_sources(sources)]

    def score(self, encoder: SentenceEncoder, data: WordOrderSet) -> list[Score]:
        """Score an encoder, see `score_word_order`."""
        return [score_word_order(encoder, data)]

    @classmethod
    def tables(cls, rows: Rows) -> list[Table]:
        """Return a table per text."""
        return [_table(rows, at) for at in range(len(first_scores(rows)))]


def read_word_order(source: str) -> WordOrderSet:
    """Read sentences and change the order of their words.

    Args:
        source: A text source, as `read_corpus` takes it. At most 6,000 of its sentences of 5 to 30 words are sampled.

    Raises:
        InputError: If the source cannot be read, or has fewer than 300 such sentences.
    """
    generator = random.Random(_SEED)  # noqa: S311  # not for cryptography
    corpus = gather_corpus([source], seed=_SEED).sentences
    original, swapped, shuffled = [], [], []
    for text in generator.sample(corpus, len(corpus)):
        words = text.split()
        indices = _swappable(words)
        if not (_MIN_WORDS <= len(words) <= _MAX_WORDS and indices):
            continue
        original.append(text)
        swapped.append(_swap(words, generator.choice(indices)))
        shuffled.append(" ".join(generator.sample(words, len(words))))
        if len(original) == _MAX_SENTENCES:
            break
    if len(original) < _MIN_SENTENCES:
        raise InputError(
            f"{source} has {len(original)} sentences of {_MIN_WORDS} to {_MAX_WORDS} words in which two words can be "
            f"swapped; expected at least {_MIN_SENTENCES}"
        )
    return WordOrderSet("/".join(Path(source).parts[-2:]), tuple(original), tuple(swapped), tuple(shuffled))


def score_word_order(encoder: SentenceEncoder, task: WordOrderSet) -> Score:
    """Compute the accuracy of a logistic regression that detects sentences with two adjacent words swapped.

    This is the task BShift of "What you can cram into a single $&!#* vector" (Conneau et al. 2018, section 2). Every
    other sentence is swapped, and none appears in both forms. Two thirds are for training, a third is for testing. An
    encoder that ignores word order scores 50.

    Args:
        encoder: The encoder.
        task: Sentences and their changed forms.

    Returns:
        Accuracy x100; details: the mean cosine similarity of the test sentences and their changed forms, which is 1 for
        an encoder that ignores word order.

    Raises:
        CheckError: If embeddings are not finite.
    """
    from edgeembed.evaluation.logistic_regression import LabeledFeatures, fit_and_test

    count = len(task.original)
    is_swapped = np.arange(count) % 2 == 1
    texts = np.where(is_swapped, task.swapped, task.original)
    examples = LabeledFeatures(encode_texts(encoder.encode, texts.tolist()), is_swapped.astype(int).astype(np.str_))
    train = np.arange(count * 2 // 3)
    test = np.arange(len(train), count)
    result = fit_and_test(examples[train], None, examples[test])
    original, swapped, shuffled = (
        encode_texts(encoder.encode, list(each[len(train) :])) for each in (task.original, task.swapped, task.shuffled)
    )
    details = {
        SWAPPED: float(pairwise_cosine(original, swapped).mean()),
        SHUFFLED: float(pairwise_cosine(original, shuffled).mean()),
    }
    interval = scaled(share_interval(result.correct, len(test)))
    accuracy = 100 * result.accuracy
    return Score(f"{task.name}, word order", METRIC, accuracy, len(test), details, interval=interval)


def _swappable(words: list[str]) -> list[int]:
    """Return the indices of words that can be swapped with the next, leaving no trace but the order.

    Both words are different and without punctuation, and neither is the first or the last, so that capitals stay.
    """
    inner = range(1, len(words) - 2)
    is_plain = [word.isalpha() for word in words]
    return [at for at in inner if is_plain[at] and is_plain[at + 1] and words[at].lower() != words[at + 1].lower()]


def _swap(words: list[str], at: int) -> str:
    return " ".join([*words[:at], words[at + 1], words[at], *words[at + 2 :]])


def _table(rows: Rows, at: int) -> Table:
    score = first_scores(rows)[at]
    columns: Columns = {score.metric: value(at, 1)}
    columns |= {name: detail(at, name) for name in (SWAPPED, SHUFFLED)}
    legend = (
        f"a logistic regression on frozen embeddings detects which of {score.items:,} sentences have two adjacent "
        "words swapped (chance: 50); mean cosine: similarity to the unchanged sentence, 1 if word order is ignored"
    )
    return table(f"Word order, {score.task.removesuffix(', word order')}", rows, columns, [legend])
