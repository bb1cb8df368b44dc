"""What a caller may choose about a bundle, checked before any work."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from edgeembed_runtime.errors import InputError

Precision = Literal["fp32", "int8"]
Role = Literal["semantic", "relevance"]

# fp32 differs from torch by rounding alone (measured: 1 - 1e-12). At int8 a six-layer teacher measured
# 0.992 on its worst of 350 sentences; a quantization that goes wrong falls well below 0.99.
MIN_COSINE: dict[str, float] = {"fp32": 0.9999, "int8": 0.99}


@dataclass(frozen=True)
class Provenance:
    """Where a model comes from, as the manifest and the card tell it.

    Attributes:
        teacher: The model it was distilled from.
        recipe: How, as the recipe's resolved values.
        licences: Of the text it was trained on.
        command: The command that made the bundle.
    """

    teacher: str | None = None
    recipe: dict[str, Any] | None = None
    licences: tuple[str, ...] = field(default=())
    command: str | None = None


def check_options(
    *, precision: str, role: str, min_cosine: float | None, max_size_mb: float | None, name: str | None
) -> None:
    """Refuse what cannot be asked for.

    Raises:
        InputError: If a choice is unknown or a limit cannot be a limit.
    """
    _check_choice("precision", precision, get_args(Precision))
    _check_choice("role", role, get_args(Role))
    if min_cosine is not None and not -1 <= min_cosine <= 1:
        raise InputError(f"min_cosine is {min_cosine}; expected a number from -1 to 1, such as 0.99")
    if max_size_mb is not None and not (math.isfinite(max_size_mb) and max_size_mb > 0):
        raise InputError(f"max_size_mb is {max_size_mb}; expected a positive number of megabytes, such as 8")
    if name is not None and not name.strip():
        raise InputError("name is empty; expected what the encoder is to be called: leave it out for the folder's")


def _check_choice(option: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise InputError(f"{option} is {given!r}; expected one of: {', '.join(known)}")
