"""Verify a bundle: its checksums, and its golden vectors or probabilities.

Checksums show that the files are the exported ones. Golden vectors, which the exporter computed and stored in
golden.json, show that this processor and this version of the engine compute the same embeddings as the exporter did. A
classifier has golden probabilities instead.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.classifier import Classifier
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import BundleError, VerificationError
from edgeembed_runtime.pipeline import Text
from edgeembed_runtime.storage.json_fields import JsonFields

GOLDEN = "golden.json"
MIN_COSINE = 0.995
"""The minimum cosine to the exporter's vectors.

In an int8 model, a difference in the last bit of one activation can change how it and later ones are rounded. Against
an exporter with AVX-512 and VNNI, the minimum on correct processors (Nehalem, Haswell and Arm's Neoverse N1, all
emulated) was 0.9998 for the encoder in the wheel and 0.9993 for all-MiniLM-L6-v2 at int8. A faulty matmul, in which
sums of 8-bit weights saturate on a Haswell, resulted in 0.986.
"""

MAX_PROBABILITY_DIFFERENCE = 0.1
"""The maximum difference to the exporter's probabilities.

Rounding alone, at the cosines above, changes the probabilities of an uncertain text by a few hundredths; a faulty
matmul changes them by tenths.
"""

# A dozen vectors of 4096 dimensions take a megabyte; a larger file is not read.
_MAX_BYTES = 4 << 20
_MAX_TEXTS = 100
_MAX_CHARACTERS = 200
# The largest component of a unit vector, with a margin for rounding.
_MAX_COMPONENT = 1.001
_TEST_TEXT = "A text that every encoder can read."
_NORM_TOLERANCE = 1e-3
_MAX_SHOWN_CHARACTERS = 40


@dataclass(frozen=True)
class Machine:
    """The machine that computed a bundle's golden vectors.

    Attributes:
        processor: The processor's name, as the operating system reports it.
        architecture: Its architecture, for example "x86_64".
        engine: The library that ran the model, and its version, for example "onnxruntime 1.31.1".
    """

    processor: str
    architecture: str
    engine: str

    def __str__(self) -> str:
        """Return the three fields in one line."""
        return f"{self.processor}, {self.architecture}, {self.engine}"


@dataclass(frozen=True)
class GoldenReport:
    """The differences between the golden vectors and the same texts' embeddings on this machine.

    Attributes:
        texts: The number of texts compared.
        min_cosine: The lowest cosine between an embedding and its golden vector.
        mean_cosine: The mean cosine.
        max_difference: The largest absolute difference between two components.
        min_cosine_text: The text with the lowest cosine.
        machine: The exporter's machine.
    """

    texts: int
    min_cosine: float
    mean_cosine: float
    max_difference: float
    min_cosine_text: str
    machine: Machine


@dataclass(frozen=True)
class GoldenPredictionsReport:
    """The differences between a classifier's golden probabilities and the same texts' on this machine.

    Attributes:
        texts: The number of texts, or pairs of texts, compared.
        label_agreement: The share of the texts with the same most probable label.
        max_difference: The largest absolute difference of a probability.
        max_difference_text: The text with that difference.
        machine: The exporter's machine.
    """

    texts: int
    label_agreement: float
    max_difference: float
    max_difference_text: str
    machine: Machine


@dataclass(frozen=True)
class Verification:
    """The result of verifying a bundle.

    Attributes:
        differences: One line for each difference; empty if the bundle passed.
        golden: The comparison with the golden vectors; None if the bundle has none, or if a file differs.
        golden_predictions: The comparison with a classifier's golden probabilities; None likewise, and for an encoder.
    """

    differences: tuple[str, ...]
    golden: GoldenReport | None
    golden_predictions: GoldenPredictionsReport | None = None

    def golden_line(self) -> str:
        """Return one line that summarizes the comparison with the golden vectors or probabilities."""
        if self.golden_predictions is not None:
            predictions = self.golden_predictions
            return (
                f"golden probabilities: maximum difference {predictions.max_difference:.2g} to those of the exporter "
                f"({predictions.machine}), {predictions.label_agreement:.0%} of the labels equal"
            )
        golden = self.golden
        if golden is None:
            return "this bundle has no golden vectors"
        return (
            f"golden vectors: minimum cosine {golden.min_cosine:.6f} to those of the exporter ({golden.machine}), "
            f"maximum difference {golden.max_difference:.2g}"
        )

    def raise_for_differences(self, where: object) -> None:
        """Raise VerificationError if there are differences; it lists them.

        Args:
            where: The bundle's path, for the message.
        """
        if self.differences:
            raise VerificationError(f"{where}: {'; '.join(self.differences)}; copy the bundle again or export it again")


def verify(bundle: Bundle) -> Verification:
    """Compare every file with its checksum and, if all match, the golden vectors or probabilities with this machine's.

    Args:
        bundle: The bundle.

    Returns:
        The differences found.

    Raises:
        BundleError: If all checksums match but the bundle cannot be loaded here.
    """
    if differences := bundle.differences():
        return Verification(differences, None)
    if bundle.is_classifier:
        predictions = compare_golden_predictions(Classifier(bundle))
        return Verification(_present([_predictions_difference(predictions)]), None, predictions)
    encoder = Encoder(bundle)
    golden = compare_golden_vectors(encoder)
    return Verification(_present([_norm_difference(encoder), _golden_difference(golden)]), golden)


def compare_golden_vectors(encoder: Encoder) -> GoldenReport | None:
    """Encode the texts in a bundle's golden.json and compare the embeddings with the stored ones.

    Args:
        encoder: The bundle's encoder.

    Returns:
        The differences; None if the bundle has no golden.json.

    Raises:
        BundleError: If golden.json has an invalid field, or the model cannot run.
        VerificationError: If golden.json does not match its checksum.
    """
    if not encoder.bundle.has_file(GOLDEN):
        return None
    golden = _read_golden(encoder.bundle, "vectors", encoder.dimension)
    embeddings = encoder.encode(golden.texts, on_truncate="ignore", on_unknown="ignore").astype(np.float64)
    cosines = _pairwise_cosines(embeddings, golden.vectors)
    worst = int(cosines.argmin())
    return GoldenReport(
        texts=len(golden.texts),
        min_cosine=float(cosines[worst]),
        mean_cosine=float(cosines.mean()),
        max_difference=float(np.abs(embeddings - golden.vectors).max()),
        min_cosine_text=golden.texts[worst],
        machine=golden.machine,
    )


def compare_golden_predictions(classifier: Classifier) -> GoldenPredictionsReport | None:
    """Classify the texts in a bundle's golden.json and compare the probabilities with the stored ones.

    Args:
        classifier: The bundle's classifier.

    Returns:
        The differences; None if the bundle has no golden.json.

    Raises:
        BundleError: As for `compare_golden_vectors`.
        VerificationError: As for `compare_golden_vectors`.
    """
    if not classifier.bundle.has_file(GOLDEN):
        return None
    golden = _read_golden(classifier.bundle, "probabilities", len(classifier.labels))
    inputs = golden_inputs(golden.texts, is_pairs=classifier.is_pairs)
    found = classifier.predict_proba(inputs, on_truncate="ignore", on_unknown="ignore").astype(np.float64)
    differences = np.abs(found - golden.vectors).max(axis=1)
    worst = int(differences.argmax())
    return GoldenPredictionsReport(
        texts=len(golden.texts),
        label_agreement=float((found.argmax(axis=1) == golden.vectors.argmax(axis=1)).mean()),
        max_difference=float(differences[worst]),
        max_difference_text=golden.texts[worst],
        machine=golden.machine,
    )


def golden_inputs(texts: Sequence[str], *, is_pairs: bool) -> list[Text]:
    """Return the golden texts; for a classifier of pairs, each text with the next one."""
    return list(zip(texts, [*texts[1:], texts[0]], strict=True)) if is_pairs else list(texts)


def _present(differences: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(difference for difference in differences if difference is not None)


def _norm_difference(encoder: Encoder) -> str | None:
    norm = float(np.linalg.norm(encoder.encode(_TEST_TEXT, on_truncate="ignore", on_unknown="ignore")))
    return None if abs(norm - 1) < _NORM_TOLERANCE else f"an embedding has norm {norm:g}, expected 1"


def _golden_difference(golden: GoldenReport | None) -> str | None:
    if golden is None or golden.min_cosine >= MIN_COSINE:
        return None
    return (
        f"the vector of {_shown(golden.min_cosine_text)} has cosine {golden.min_cosine:.6f} to the exporter's "
        f"({golden.machine}), expected at least {MIN_COSINE}: edgeembed.json was changed, or this version of the "
        "engine computes wrong results on this processor; export the bundle again, or try another version"
    )


def _predictions_difference(golden: GoldenPredictionsReport | None) -> str | None:
    if golden is None or golden.max_difference <= MAX_PROBABILITY_DIFFERENCE:
        return None
    return (
        f"the probabilities of {_shown(golden.max_difference_text)} differ by {golden.max_difference:.3f} from the "
        f"exporter's ({golden.machine}), expected at most {MAX_PROBABILITY_DIFFERENCE}: edgeembed.json was changed, or "
        "this version of the engine computes wrong results on this processor; export the bundle again, or try another "
        "version"
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}...")


@dataclass(frozen=True)
class _Golden:
    """The content of golden.json; the vectors or probabilities are (texts, size)."""

    texts: tuple[str, ...]
    vectors: npt.NDArray[np.float64]
    machine: Machine


class _GoldenFields(JsonFields):
    def line(self, name: str) -> str:
        text = self.string(name)
        if not text.isprintable() or len(text) > _MAX_CHARACTERS:  # it is printed on a terminal
            raise self.field_error(name, f"at most {_MAX_CHARACTERS} printable characters")
        return text

    def valid_texts(self, name: str) -> tuple[str, ...]:
        texts = self.strings(name)
        if not 1 <= len(texts) <= _MAX_TEXTS:
            raise self.field_error(name, f"1 to {_MAX_TEXTS} texts")
        return texts

    def vectors(self, name: str, count: int, dimension: int) -> npt.NDArray[np.float64]:
        expected = f"{count} lists of {dimension} numbers between -1 and 1"
        rows = self._take(name, expected, lambda v: _is_list(v, count) and all(_is_vector(row, dimension) for row in v))
        # Rounded to float32, as they were computed, so that the difference is exactly 0 on the exporter's machine.
        return np.array(rows, dtype=np.float32).astype(np.float64)


def _read_golden(bundle: Bundle, name: str, width: int) -> _Golden:
    where = str(bundle.folder / GOLDEN)
    size = sum(file.size_bytes for file in bundle.files if file.name == GOLDEN)
    if size > _MAX_BYTES:
        raise BundleError(f"{where} has {size} bytes, expected at most {_MAX_BYTES}; export the bundle again")
    fields = _GoldenFields(_parse_json(bundle.read(GOLDEN), where), where, BundleError)
    texts = fields.valid_texts("texts")
    return _Golden(
        texts=texts,
        vectors=fields.vectors(name, len(texts), width),
        machine=Machine(fields.line("processor"), fields.line("architecture"), fields.line("engine")),
    )


def _parse_json(content: bytes, where: str) -> object:
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{where} is not valid JSON ({error}); export the bundle again") from error
    return document


def _is_list(value: object, length: int) -> bool:
    return isinstance(value, list) and len(value) == length


def _is_vector(row: Any, dimension: int) -> bool:
    return _is_list(row, dimension) and all(_is_component(value) for value in row)


def _is_component(value: object) -> bool:
    # The comparison also rejects NaN, and integers too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_COMPONENT


def _pairwise_cosines(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the cosine of each pair of rows in float64; exactly 1 where both are equal, zero vectors too."""
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosines = (a * b).sum(axis=1) / np.where(norms == 0, 1, norms)
    exact: npt.NDArray[np.float64] = np.where((a == b).all(axis=1), 1.0, cosines)
    return exact
