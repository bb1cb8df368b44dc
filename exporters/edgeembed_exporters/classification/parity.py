"""The gate of a classifier's export: how far its bundle's predictions agree with the classifier's."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from edgeembed_runtime import Bundle, Classifier
from edgeembed_runtime.errors import BundleError
from edgeembed_runtime.parity import ClassifierParity, WorstPrediction
from edgeembed_runtime.pipeline import Text

from edgeembed_exporters.classification.graph import ClassifierModel
from edgeembed_exporters.gate import GateError, higher_precision_or
from edgeembed_exporters.settings import spelled

_WORST_SENTENCES = 10
_SHOWN_CHARACTERS = 80


def compare_predictions(model: ClassifierModel, bundle: Bundle, texts: Sequence[Text]) -> ClassifierParity:
    """Classify texts with a classifier and with its bundle, and compare the probabilities.

    Args:
        model: The classifier that the bundle was made from.
        bundle: The bundle.
        texts: Texts, or pairs of texts, that the bundle was not calibrated on.

    Raises:
        GateError: If the bundle cannot run.
    """
    # One at a time, as the bundle reads them: padding changes the predictions of some encoders.
    expected = np.concatenate([model.predict_proba([text]) for text in texts])
    try:
        found = Classifier(bundle, threads=None).predict_proba(texts, on_truncate="ignore", on_unknown="ignore")
    except BundleError as error:
        raise GateError(
            f"the bundle cannot classify; nothing was written: choose another precision ({error})"
        ) from error
    return measure_predictions(texts, expected, found)


def measure_predictions(
    texts: Sequence[Text], expected: npt.NDArray[np.float32], found: npt.NDArray[np.float32]
) -> ClassifierParity:
    """Return the agreement between the predictions of two classifiers.

    Args:
        texts: The texts, or pairs of texts.
        expected: Their probabilities by the classifier, (texts, labels).
        found: Their probabilities by the bundle, (texts, labels).
    """
    differences = np.abs(expected.astype(np.float64) - found).max(axis=1)
    descending = np.argsort(-differences, kind="stable")[:_WORST_SENTENCES]
    return ClassifierParity(
        sentences=len(texts),
        label_agreement=float((expected.argmax(axis=1) == found.argmax(axis=1)).mean()),
        max_probability_difference=float(differences.max()),
        mean_probability_difference=float(differences.mean()),
        worst_sentences=tuple(WorstPrediction(_as_text(texts[i]), float(differences[i])) for i in descending),
    )


def check_predictions(
    parity: ClassifierParity, min_agreement: float, max_difference: float, precision: str | None = None
) -> None:
    """Raise GateError if a bundle's predictions differ too much from the classifier's.

    Args:
        parity: What was measured.
        min_agreement: The minimum share of texts with the same label.
        max_difference: The maximum absolute difference of a probability.
        precision: The bundle's precision, for the advice.
    """
    worst = parity.worst_sentences[0].text[:_SHOWN_CHARACTERS]
    if not parity.label_agreement >= min_agreement:
        raise GateError(
            f"the labels of {parity.label_agreement:.2%} of {parity.sentences} texts agree with the classifier's, "
            f"required are {min_agreement:.2%}; nothing was written: {higher_precision_or(precision)}lower "
            f"{spelled('min_label_agreement')} ({worst!r})",
            parity,
        )
    if not parity.max_probability_difference <= max_difference:
        raise GateError(
            f"the largest difference to the classifier's probabilities over {parity.sentences} texts is "
            f"{parity.max_probability_difference:.4f}, allowed is {max_difference:g}; nothing was written: "
            f"{higher_precision_or(precision)}raise {spelled('max_probability_difference')} ({worst!r})",
            parity,
        )


def _as_text(text: Text) -> str:
    return text if isinstance(text, str) else "\t".join(text)
