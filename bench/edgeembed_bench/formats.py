"""How figures are written, and what stands where there is none."""

import numpy as np

from edgeembed_bench.stats import Estimate, Spread

MISSING = "-"
NOT_MEASURED = "not measured"


def digits(value: float | None, precision: int = 3) -> str:
    """Write a number with so many digits that count."""
    if value is None:
        return MISSING
    return np.format_float_positional(value, precision=precision, fractional=False, trim="-")


def fixed(value: float | None, decimals: int) -> str:
    """Write a number with so many digits after the point."""
    return MISSING if value is None else f"{value:.{decimals}f}"


def counted(value: float | None) -> str:
    """Write a number without a fraction, its thousands apart."""
    return MISSING if value is None else f"{value:,.0f}"


def megabytes(size_bytes: float | None) -> str:
    """Write bytes as megabytes of 10^6 bytes."""
    return MISSING if size_bytes is None else digits(size_bytes / 1e6)


def millions(count: int | None) -> str:
    """Write a count in millions."""
    return MISSING if count is None else f"{digits(count / 1e6)}M"


def quartiles(found: Spread) -> str:
    """Write the quartiles of a spread."""
    low, high = (digits(value, 3 if value >= 1 else 2) for value in (found.q1, found.q3))
    return f"{low}–{high}"  # noqa: RUF001  # a range takes an en dash


def ratio(value: float) -> str:
    """Write a ratio: the third digit counts near 1, where it tells two apart."""
    return digits(value, 3 if value > 0.1 else 2)


def interval(found: Estimate) -> str:
    """Write the 95 % interval of a ratio."""
    if found.low is None or found.high is None:
        return MISSING
    return f"{ratio(found.low)}–{ratio(found.high)}"  # noqa: RUF001  # a range takes an en dash


def names(found: list[str]) -> str:
    """Write names one after another, as in a sentence."""
    return ", ".join(found)
