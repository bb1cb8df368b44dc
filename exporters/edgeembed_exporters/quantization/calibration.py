"""Statistics of activations on calibration text: range of each channel, second moment."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from edgeembed_runtime.pipeline import Text

from edgeembed_exporters.onnx.graph import probe

Array = npt.NDArray[np.float32]
Moment = npt.NDArray[np.float64]

# Numbers of words of the short texts that are made of each text.
_SHORT_TEXT_WORDS = (1, 2, 4)
_TEXTS_AT_ONCE = 64


@dataclass(frozen=True)
class ActivationStatistics:
    """What is known of an activation (tokens, channels) from calibration text.

    Attributes:
        minimum: The least value of each channel, float32 (channels,).
        maximum: The greatest value of each channel, float32 (channels,).
        total: The sum of each channel over all tokens, float64 (channels,).
        moment: The second moment X^T X, summed over all tokens, float64 (channels, channels).
        tokens: The number of tokens.
    """

    minimum: Array
    maximum: Array
    total: npt.NDArray[np.float64]
    moment: Moment
    tokens: int

    @classmethod
    def of(cls, rows: Array) -> "ActivationStatistics":
        """Return the statistics of rows (tokens, channels)."""
        moment = (rows.T @ rows).astype(np.float64)
        return cls(rows.min(axis=0), rows.max(axis=0), rows.sum(axis=0, dtype=np.float64), moment, len(rows))

    def __add__(self, other: "ActivationStatistics") -> "ActivationStatistics":
        """Return the statistics over the tokens of both."""
        return ActivationStatistics(
            np.minimum(self.minimum, other.minimum),
            np.maximum(self.maximum, other.maximum),
            self.total + other.total,
            self.moment + other.moment,
            self.tokens + other.tokens,
        )

    @property
    def magnitude(self) -> Array:
        """The largest magnitude of each channel, float32 (channels,)."""
        return np.maximum(-self.minimum, self.maximum)

    def moment_after(self, center: Array, factors: Array) -> Moment:
        """Return the second moment of `(activation - center) / factors`.

        Args:
            center: float32 (channels,).
            factors: float32 (channels,).
        """
        shift = np.outer(self.total, center)
        centered = self.moment - shift - shift.T + self.tokens * np.outer(center, center)
        moment: Moment = centered / np.outer(factors, factors).astype(np.float64)
        return moment


def with_short_texts(texts: Iterable[Text]) -> list[Text]:
    """Return calibration texts, and their first and last words as texts of their own.

    The activations of short texts are the most extreme ones, since their tokens attend to few others, and errors show
    most in their embeddings, which are averages of few tokens.

    Args:
        texts: Texts, or pairs of texts.
    """
    given = list(texts)
    parts = [part for count in _SHORT_TEXT_WORDS for part in (slice(count), slice(-count, None))]
    short = [_words(text, part) for text in given for part in parts]
    return list(dict.fromkeys([*given, *short]))


def measure_activations(
    model: onnx.ModelProto, activations: Sequence[str], token_ids: Iterable[list[int]]
) -> dict[str, ActivationStatistics]:
    """Measure some activations on calibration text.

    Args:
        model: A float32 model.
        activations: Names of tensors (..., channels).
        token_ids: Calibration text: the unpadded token ids of each text.
    """
    statistics: dict[str, ActivationStatistics] = {}
    pending: dict[str, list[Array]] = {name: [] for name in activations}

    def add(name: str) -> None:
        found = ActivationStatistics.of(np.concatenate(pending[name]))
        statistics[name] = statistics[name] + found if name in statistics else found
        pending[name].clear()

    for name, rows in _activation_rows(model, activations, token_ids):
        pending[name].append(rows)
        if len(pending[name]) == _TEXTS_AT_ONCE:
            add(name)
    for name in activations:
        if pending[name]:
            add(name)
    return statistics


def _words(text: Text, part: slice) -> Text:
    """Return some words of a text, or of both texts of a pair."""
    if isinstance(text, str):
        return " ".join(text.split()[part])
    first, second = (" ".join(each.split()[part]) for each in text)
    return first, second


def _activation_rows(
    model: onnx.ModelProto, activations: Sequence[str], token_ids: Iterable[list[int]]
) -> Iterator[tuple[str, Array]]:
    """Yield the name and the rows (tokens, channels) of each activation, text by text."""
    if not activations:
        return
    run = probe(model, activations)
    texts = [row for row in token_ids if row] or [[0]]  # without calibration text, one token is better than nothing
    for row in texts:
        ids = np.array([row], dtype=np.int64)
        values = run(ids, np.ones_like(ids))
        yield from ((name, value.reshape(-1, value.shape[-1])) for name, value in zip(activations, values, strict=True))
