"""Formatting of numbers in tables, and placeholders for missing values."""

import numpy as np

from edgeembed_bench.stats import Interval, Quartiles

MISSING = "-"
NOT_MEASURED = "not measured"


def digits(value: float | None, precision: int = 3) -> str:
    """Format a number with `precision` significant digits."""
    if value is None:
        return MISSING
    return np.format_float_positional(value, precision=precision, fractional=False, trim="-")


def fixed(value: float | None, decimals: int) -> str:
    """Format a number with a fixed number of decimals."""
    return MISSING if value is None else f"{value:.{decimals}f}"


def counted(value: float | None) -> str:
    """Format a number without decimals, with thousands separators."""
    return MISSING if value is None else f"{value:,.0f}"


def megabytes(size_bytes: float | None) -> str:
    """Format bytes as megabytes of 10^6 bytes."""
    return MISSING if size_bytes is None else digits(size_bytes / 1e6)


def millions(count: int | None) -> str:
    """Format a count in millions."""
    return MISSING if count is None else f"{digits(count / 1e6)}M"


def quartiles(samples: Quartiles) -> str:
    """Format the first and the third quartile."""
    low, high = (digits(value, 3 if value >= 1 else 2) for value in (samples.q1, samples.q3))
    return f"{low}–{high}"  # noqa: RUF001  # a range takes an en dash


def ratio(value: float) -> str:
    """Format a ratio with three significant digits, or with two if it is at most 0.1."""
    return digits(value, 3 if value > 0.1 else 2)


def interval(ratios: Interval) -> str:
    """Format the 95 % confidence interval of a ratio."""
    if ratios.low is None or ratios.high is None:
        return MISSING
    return f"{ratio(ratios.low)}–{ratio(ratios.high)}"  # noqa: RUF001  # a range takes an en dash


def bounds(measured: Interval | None, decimals: int) -> str:
    """Format the bounds of a 95 % confidence interval with a fixed number of decimals."""
    if measured is None or measured.low is None or measured.high is None:
        return MISSING
    return f"{measured.low:.{decimals}f} to {measured.high:.{decimals}f}"  # not an en dash: a bound can be negative
