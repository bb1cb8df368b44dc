"""Word order: whether vectors tell a text from the same words in another order."""

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.similarity import normalize

from edgeembed.corpus import gather_corpus
from edgeembed.evaluation.encoders import SentenceEncoder, vectors
from edgeembed.evaluation.scores import Score

METRIC = "bigram shift accuracy x100"
EXCHANGED, SHUFFLED = "mean cosine to two words exchanged", "mean cosine to all words shuffled"
_MOST, _FEWEST = 6000, 300
_SHORTEST, _LONGEST = 5, 30  # words
_SEED = 1111  # that of SentEval


@dataclass(frozen=True)
class WordOrderSet:
    """Sentences, each beside two that differ from it by the order of its words alone.

    Attributes:
        name: What it was read from, with its folder.
        intact: The sentences.
        exchanged: Two neighbouring words of each have changed places.
        shuffled: All words of each are in random order.
    """

    name: str
    intact: tuple[str, ...]
    exchanged: tuple[str, ...]
    shuffled: tuple[str, ...]


def read_word_order(source: str) -> WordOrderSet:
    """Make pairs that differ only by order from text.

    Args:
        source: Text in any form that `read_corpus` takes. Of its sentences of 5 to 30 words 6,000 are drawn at most.

    Raises:
        InputError: If it cannot be used, or has fewer than 300 such sentences.
    """
    draw = random.Random(_SEED)  # noqa: S311  # a sample, no secret
    corpus = gather_corpus([source], seed=_SEED).sentences
    intact, exchanged, shuffled = [], [], []
    for text in draw.sample(corpus, len(corpus)):
        words = text.split()
        places = _neighbours(words)
        if not (_SHORTEST <= len(words) <= _LONGEST and places):
            continue
        intact.append(text)
        exchanged.append(_exchanged(words, draw.choice(places)))
        shuffled.append(" ".join(draw.sample(words, len(words))))
        if len(intact) == _MOST:
            break
    if len(intact) < _FEWEST:
        raise InputError(
            f"{source} has {len(intact)} sentences of {_SHORTEST} to {_LONGEST} words to change the order of; expected "
            f"{_FEWEST} or more"
        )
    return WordOrderSet("/".join(Path(source).parts[-2:]), tuple(intact), tuple(exchanged), tuple(shuffled))


def score_word_order(encoder: SentenceEncoder, task: WordOrderSet) -> Score:
    """Score an encoder by what a logistic regression on its vectors finds of words that were exchanged.

    This is the task BShift of Conneau et al. (2018): every other sentence has two neighbouring words exchanged, and
    none is there in both forms; two thirds teach, a third tests. An encoder that is blind to order is at 50.

    Args:
        encoder: What to score.
        task: Sentences and their changed forms.

    Returns:
        Accuracy x100; among the details how near the vectors of a sentence and its changed forms are, on average over
        the third that tests: 1 where order changes nothing.

    Raises:
        CheckError: If the encoder gives vectors that are not finite.
    """
    from edgeembed.evaluation.classification import Labelled, tested

    count = len(task.intact)
    changed = np.arange(count) % 2 == 1
    asked = np.where(changed, task.exchanged, task.intact)
    features, labels = vectors(encoder.encode, asked.tolist()), changed.astype(int).astype(np.str_)
    train = np.arange(count * 2 // 3)
    test = np.arange(len(train), count)
    outcome = tested(Labelled(features[train], labels[train]), None, Labelled(features[test], labels[test]))
    intact, exchanged, shuffled = (
        normalize(vectors(encoder.encode, list(texts[len(train) :])))
        for texts in (task.intact, task.exchanged, task.shuffled)
    )
    details = {EXCHANGED: _mean_cosine(intact, exchanged), SHUFFLED: _mean_cosine(intact, shuffled)}
    return Score(f"{task.name}, word order", METRIC, 100 * outcome.accuracy, len(test), details)


def _neighbours(words: list[str]) -> list[int]:
    """Give where a word and its right neighbour can change places and only order tells: both bare, and different."""
    inner = range(1, len(words) - 2)
    bare = [word.isalpha() for word in words]
    return [at for at in inner if bare[at] and bare[at + 1] and words[at].lower() != words[at + 1].lower()]


def _exchanged(words: list[str], at: int) -> str:
    return " ".join([*words[:at], words[at + 1], words[at], *words[at + 2 :]])


def _mean_cosine(first: npt.NDArray[np.float32], second: npt.NDArray[np.float32]) -> float:
    return float(np.einsum("ij,ij->i", first, second).mean())
