"""Golden vectors: what the exporter's machine computed, to compare this one with.

Checksums say that a bundle's files are the ones that were exported; not that this processor and this version of the
engine compute with them what the exporter's did. A bundle's golden.json tells, with texts and their vectors.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import BundleError
from edgeembed_runtime.storage.json_fields import JsonFields

if TYPE_CHECKING:
    from edgeembed_runtime.bundle import Bundle
    from edgeembed_runtime.encoder import Encoder

GOLDEN = "golden.json"

# A dozen texts of 4096 dimensions are a megabyte; what claims more is not read.
_MOST_BYTES = 4 << 20
_MOST_TEXTS = 100
_MOST_CHARACTERS = 200
# No number of a vector of unit length is larger, give or take rounding.
_LARGEST = 1.001


@dataclass(frozen=True)
class Machine:
    """What a bundle's golden vectors were computed on.

    Attributes:
        processor: The processor's name, as the system gives it.
        architecture: Its kind, for example "x86_64".
        engine: What ran the model, and its version, for example "onnxruntime 1.31.1".
    """

    processor: str
    architecture: str
    engine: str

    def __str__(self) -> str:
        """Give all three in one line."""
        return f"{self.processor}, {self.architecture}, {self.engine}"


@dataclass(frozen=True)
class GoldenReport:
    """How far vectors computed here are from those of the exporter.

    Attributes:
        texts: How many texts were compared.
        worst_cosine: The lowest cosine among them, between the vector computed here and the exporter's.
        mean_cosine: The mean of their cosines.
        largest_difference: The largest between a number of a vector and the exporter's.
        worst_text: The text with the lowest cosine.
        machine: What the exporter computed them on.
    """

    texts: int
    worst_cosine: float
    mean_cosine: float
    largest_difference: float
    worst_text: str
    machine: Machine


def check_golden(encoder: "Encoder") -> GoldenReport | None:
    """Encode the texts that a bundle keeps the exporter's vectors of, and compare.

    Args:
        encoder: The bundle's encoder.

    Returns:
        How far they are apart; None if the bundle carries none, as older ones do not.

    Raises:
        BundleError: If its golden.json is not what an exporter writes, or the model cannot run.
        VerificationError: If golden.json is not the one that was exported.
    """
    if not encoder.bundle.holds(GOLDEN):
        return None
    golden = _read(encoder.bundle)
    given = encoder.encode(golden.texts, on_truncate="ignore").astype(np.float64)
    cosines = _cosines(given, golden.vectors)
    worst = int(cosines.argmin())
    return GoldenReport(
        texts=len(golden.texts),
        worst_cosine=float(cosines[worst]),
        mean_cosine=float(cosines.mean()),
        largest_difference=float(np.abs(given - golden.vectors).max()),
        worst_text=golden.texts[worst],
        machine=golden.machine,
    )


@dataclass(frozen=True)
class _Golden:
    """The content of golden.json; the vectors are (texts, dimension)."""

    texts: tuple[str, ...]
    vectors: npt.NDArray[np.float64]
    machine: Machine


class _GoldenFields(JsonFields):
    def line(self, name: str) -> str:
        text = self.text(name)
        if not text.isprintable() or len(text) > _MOST_CHARACTERS:  # it is shown in a terminal
            raise self.refuse(name, f"at most {_MOST_CHARACTERS} printable characters")
        return text

    def valid_texts(self, name: str) -> tuple[str, ...]:
        texts = self.texts(name)
        if not 1 <= len(texts) <= _MOST_TEXTS or not all(_is_unicode(text) for text in texts):
            raise self.refuse(name, f"1 to {_MOST_TEXTS} texts of valid Unicode")
        return texts

    def vectors(self, name: str, count: int, dimension: int) -> npt.NDArray[np.float64]:
        expected = f"{count} lists of {dimension} numbers between -1 and 1"
        rows = self._take(name, expected, lambda v: _is_list(v, count) and all(_is_vector(row, dimension) for row in v))
        # In float32, as they were computed: the same machine differs by nothing at all.
        return np.array(rows, dtype=np.float32).astype(np.float64)


def _read(bundle: "Bundle") -> _Golden:
    where = str(bundle.path / GOLDEN)
    size = sum(file.size_bytes for file in bundle.files if file.name == GOLDEN)
    if size > _MOST_BYTES:
        raise BundleError(f"{where} has {size} bytes, expected at most {_MOST_BYTES}; export the bundle again")
    fields = _GoldenFields(_parse(bundle.read(GOLDEN), where), where, BundleError)
    texts = fields.valid_texts("texts")
    return _Golden(
        texts=texts,
        vectors=fields.vectors("vectors", len(texts), bundle.dimension),
        machine=Machine(fields.line("processor"), fields.line("architecture"), fields.line("engine")),
    )


def _parse(content: bytes, where: str) -> object:
    try:
        document: object = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{where} is no valid JSON ({error}); export the bundle again") from error
    return document


def _is_list(value: object, length: int) -> bool:
    return isinstance(value, list) and len(value) == length


def _is_vector(row: Any, dimension: int) -> bool:
    return _is_list(row, dimension) and all(_is_component(value) for value in row)


def _is_component(value: object) -> bool:
    # The comparison refuses NaN too, and whole numbers that no float can hold.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _cosines(given: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Give the cosine of each row with the one in its place; 1 where both are the same, zeros too."""
    lengths = np.linalg.norm(given, axis=1) * np.linalg.norm(expected, axis=1)
    cosines = (given * expected).sum(axis=1) / np.where(lengths == 0, 1, lengths)
    same: npt.NDArray[np.float64] = np.where((given == expected).all(axis=1), 1.0, cosines)
    return same
