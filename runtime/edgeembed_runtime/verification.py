"""Whether a bundle is the one that was exported, and gives here what it gave there."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import VerificationError
from edgeembed_runtime.golden import GoldenReport, check_golden

MIN_COSINE = 0.995
"""The least cosine to the exporter's vectors that passes.

At int8 a last bit that differs tips a rounding, and that the next ones. Against an exporter with AVX-512 and VNNI, the
worst on sound processors (Nehalem, Haswell and Arm's Neoverse N1, all emulated) was 0.9998 for the encoder in the wheel
and 0.9993 for all-MiniLM-L6-v2 at int8. A faulty product, 8-bit weights whose sums saturate on a Haswell, gave 0.986.
"""

_TEXT = "A text that every encoder can read."
_ROUNDING = 1e-3
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True)
class Verification:
    """What comparing a bundle with what was exported has found.

    Attributes:
        differences: What differs, a line each; none if it is the bundle that was exported and gives the same here.
        golden: How far vectors computed here are from the exporter's; None if the bundle carries none of those, or a
            file differs.
    """

    differences: tuple[str, ...]
    golden: GoldenReport | None

    def golden_line(self) -> str:
        """Say in a line how far vectors computed here are from the exporter's."""
        golden = self.golden
        if golden is None:
            return "this bundle carries no golden vectors"
        return (
            f"golden vectors: worst cosine {golden.worst_cosine:.6f} to those of the exporter ({golden.machine}), "
            f"largest difference {golden.largest_difference:.2g}"
        )

    def demand(self, where: object) -> None:
        """Refuse a bundle that differs.

        Args:
            where: The bundle, for the message.

        Raises:
            VerificationError: If anything differs; it says what, and what to do.
        """
        if self.differences:
            raise VerificationError(f"{where}: {'; '.join(self.differences)}; copy the bundle again or export it again")


def verify(bundle: Bundle) -> Verification:
    """Compare every file with its checksum and, if all are right, the exporter's vectors with those computed here.

    Args:
        bundle: The bundle.

    Raises:
        BundleError: If its files are right and it cannot be loaded here all the same.
    """
    if differences := bundle.differences():
        return Verification(differences, None)
    encoder = Encoder(bundle)
    golden = check_golden(encoder)
    return Verification(_known([_length_difference(encoder), _golden_difference(golden)]), golden)


def _known(differences: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(difference for difference in differences if difference is not None)


def _length_difference(encoder: Encoder) -> str | None:
    length = float(np.linalg.norm(encoder.encode(_TEXT, on_truncate="ignore")))
    return None if abs(length - 1) < _ROUNDING else f"it gives a vector of length {length:g}, expected 1"


def _golden_difference(golden: GoldenReport | None) -> str | None:
    if golden is None or golden.worst_cosine >= MIN_COSINE:
        return None
    text = golden.worst_text
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
    return (
        f"the vector of {shown!r} has cosine {golden.worst_cosine:.6f} to the exporter's ({golden.machine}), expected "
        f"at least {MIN_COSINE}: edgeembed.json was changed, or the engine is faulty on this processor, where another "
        "version of it may not be"
    )
