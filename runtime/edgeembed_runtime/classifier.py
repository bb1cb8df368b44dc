"""The classifier: texts in, labels and probabilities out."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._validation import validate_batch_size, validate_pairs, validate_texts, validate_threads
from edgeembed_runtime.builtin_models import open_bundle
from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.encode_options import TextAction, TextPolicy
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.pipeline import Pipeline, Text


@dataclass(frozen=True)
class Prediction:
    """The prediction for one text.

    Attributes:
        label: The most probable label.
        score: Its probability.
        scores: The probability of every label, in the order of `Classifier.labels`; they sum to 1.
    """

    label: str
    score: float
    scores: dict[str, float]


class Classifier:
    """Predict the label of texts, or of pairs of texts.

    Threads may share a classifier, and it keeps working in a forked process.

    Args:
        bundle: The path of the folder that `edgeembed export` wrote from a classifier, or an opened `Bundle`.
        threads: The number of threads for many texts; None uses all cores that the process may use. See `Encoder`.

    Raises:
        InputError: If `threads` is below 1, or there is no such folder.
        BundleError: If the bundle cannot be loaded, or is an encoder.
        VerificationError: If the model or the tokenizer does not match its checksum.

    Examples:
        >>> classifier = Classifier("intents")  # doctest: +SKIP
        >>> classifier.predict("Turn on the light.").label  # doctest: +SKIP
        'light_on'
    """

    def __init__(self, bundle: Bundle | str | os.PathLike[str], *, threads: int | None = 1) -> None:
        validate_threads(threads)
        if bundle is None:
            raise InputError("the bundle is None, expected the path of a classifier's bundle, or a Bundle")
        self._bundle, _ = open_bundle(bundle, is_classifier=True)
        self._threads = threads
        self._pipeline = Pipeline(self._bundle)

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling: the receiving process loads the bundle again."""
        return _load_again, (self._bundle, self._threads)

    def __repr__(self) -> str:
        """Return the classifier's name, number of labels and folder."""
        return f"<Classifier {self._bundle.name!r}, {len(self.labels)} labels, from {str(self._bundle.path)!r}>"

    @classmethod
    def from_pretrained(
        cls, path: str | os.PathLike[str], *, verify: bool = False, threads: int | None = 1
    ) -> "Classifier":
        """Load the classifier in a bundle's folder. Nothing is downloaded.

        Args:
            path: The folder, for example one downloaded with `hf download`.
            verify: Whether to compare every file with its checksum. The sizes of all files, and the checksums of the
                model and the tokenizer, are always compared.
            threads: As for `Classifier`.

        Returns:
            The classifier.

        Raises:
            InputError: As for `Classifier`.
            BundleError: As for `Classifier`.
            VerificationError: If a file does not match its checksum.
        """
        classifier = cls(path, threads=threads)
        if verify:
            classifier.bundle.verify()
        return classifier

    @property
    def bundle(self) -> Bundle:
        """The bundle that was loaded."""
        return self._bundle

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, in the order of the probabilities."""
        return self._bundle.labels

    @property
    def is_pairs(self) -> bool:
        """Whether the classifier reads pairs of texts."""
        return self._bundle.is_pairs

    @property
    def max_seq_length(self) -> int:
        """The maximum number of tokens read from a text or a pair, including special tokens."""
        return self._bundle.max_seq_length

    @overload
    def predict(
        self,
        texts: str | tuple[str, str],
        *,
        batch_size: int = ...,
        on_truncate: TextAction = ...,
        on_unknown: TextAction = ...,
        show_progress_bar: bool | None = ...,
    ) -> Prediction: ...

    @overload
    def predict(
        self,
        texts: Iterable[Any],
        *,
        batch_size: int = ...,
        on_truncate: TextAction = ...,
        on_unknown: TextAction = ...,
        show_progress_bar: bool | None = ...,
    ) -> list[Prediction]: ...

    def predict(
        self,
        texts: Any,
        *,
        batch_size: int = 32,
        on_truncate: TextAction = "warn",
        on_unknown: TextAction = "warn",
        show_progress_bar: bool | None = None,
    ) -> Prediction | list[Prediction]:
        """Return the prediction for a text, or for each of many texts.

        Args:
            texts: As for `predict_proba`.
            batch_size: As for `predict_proba`.
            on_truncate: As for `predict_proba`.
            on_unknown: As for `predict_proba`.
            show_progress_bar: As for `predict_proba`.

        Returns:
            One `Prediction` for one text, a list of them for many.

        Raises:
            InputError: As for `predict_proba`.
            BundleError: As for `predict_proba`.

        Warns:
            TruncationWarning: As for `predict_proba`.
            UnknownTextWarning: As for `predict_proba`.
        """
        probabilities = self.predict_proba(
            texts,
            batch_size=batch_size,
            on_truncate=on_truncate,
            on_unknown=on_unknown,
            show_progress_bar=show_progress_bar,
        )
        if probabilities.ndim == 1:
            return self._prediction(probabilities)
        return [self._prediction(row) for row in probabilities]

    def predict_proba(
        self,
        texts: Any,
        *,
        batch_size: int = 32,
        on_truncate: TextAction = "warn",
        on_unknown: TextAction = "warn",
        show_progress_bar: bool | None = None,
    ) -> npt.NDArray[np.float32]:
        """Return the probability of each label, for a text or for each of many texts.

        The probabilities are the softmax of the model's logits. Each text runs alone, so that its probabilities never
        depend on the other texts.

        Args:
            texts: A text, or a list of texts. For a classifier of pairs, a tuple of two texts, or a list of them.
            batch_size: At least 1. It has no effect, because texts run one by one.
            on_truncate: What to do if texts have more than `max_seq_length` tokens, so that their ends are not read:
                "warn" issues one warning per call, "error" raises InputError, and "ignore" does neither.
            on_unknown: What to do if the vocabulary knows almost none of the words of texts; likewise.
            show_progress_bar: Whether to show a counter after two seconds, if stderr is a terminal.

        Returns:
            (labels,) float32 for one text, (texts, labels) for many, in the order of `labels`.

        Raises:
            InputError: If a text is not valid Unicode, or an argument has an unsupported value.
            BundleError: If the model cannot run, or returns logits that are not finite.

        Warns:
            TruncationWarning: If a text is too long and `on_truncate` is "warn".
            UnknownTextWarning: If the vocabulary knows almost no word of a text and `on_unknown` is "warn".
        """
        validate_batch_size(batch_size)
        policy = TextPolicy(on_truncate, on_unknown)
        inputs, is_single = self._inputs(texts)
        outputs = self._pipeline.run(inputs, policy, threads=self._threads, show_progress=bool(show_progress_bar))
        policy.warn(len(inputs), *outputs.counts(), self.max_seq_length)
        logits = outputs.values
        for row in logits:  # row by row, so that rounding cannot depend on the number of rows
            row[:] = _softmax(row)
        return logits[0] if is_single else logits

    def _inputs(self, texts: Any) -> tuple[list[Text], bool]:
        """Return the texts or pairs as a list, and whether a single one was given."""
        if not self.is_pairs:
            is_single = isinstance(texts, str)
            return list(validate_texts([texts] if is_single else texts)), is_single
        is_single = isinstance(texts, tuple) and len(texts) == 2 and all(isinstance(text, str) for text in texts)
        return list(validate_pairs([texts] if is_single else texts)), is_single

    def _prediction(self, probabilities: npt.NDArray[np.float32]) -> Prediction:
        scores = dict(zip(self.labels, probabilities.tolist(), strict=True))
        label = self.labels[int(probabilities.argmax())]
        return Prediction(label, scores[label], scores)


def _softmax(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    exponentials = np.exp(logits.astype(np.float64) - logits.max())
    probabilities: npt.NDArray[np.float64] = exponentials / exponentials.sum()
    return probabilities


def _load_again(bundle: Bundle, threads: int | None) -> Classifier:
    return Classifier(bundle, threads=threads)
