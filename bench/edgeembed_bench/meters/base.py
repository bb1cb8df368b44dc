"""The energy meter protocol and its reading. If the energy was not measured, it is None with a reason, never 0."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Reading:
    """Energy of one measurement window.

    Attributes:
        energy_j: Total energy in joules: all packages and their DRAM for RAPL, the whole discharge for a battery, see
            `ZeusMeter` for Apple silicon and Jetson. None if not measured.
        window_s: Length of the window in seconds, between the two reads of the counters.
        domains_j: Joules by domain, summed over sockets, such as "package", "core", "uncore", "dram", "psys", "battery"
            or "cpu". Domains overlap: core and uncore are parts of package, package is part of psys. A domain that was
            not measured is absent.
        reason: Why the energy was not measured and what to do, one line; None if it was measured.
    """

    energy_j: float | None
    window_s: float
    domains_j: dict[str, float]
    reason: str | None = None


class EnergyMeter(Protocol):
    """Measures the energy that the machine uses between `begin` and `end`."""

    @property
    def source(self) -> str | None:
        """Description of the counters; None for a meter that measures nothing."""

    @property
    def min_window_s(self) -> float:
        """Minimum length of a window in seconds, for an error of about 1 % or less from the counters' resolution."""

    def begin(self) -> None:
        """Open a window. A window that is still open is dropped."""

    def end(self) -> Reading:
        """Close the window and return its reading. Counter errors become the reading's reason; nothing is raised."""


class NullMeter:
    """Meter of a machine without a usable energy counter: every reading is None with the same reason.

    Args:
        reason: Why nothing is measured and what to do, one line.
    """

    source: str | None = None
    min_window_s = 0.0

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def begin(self) -> None:
        """Open a window."""

    def end(self) -> Reading:
        """Return a reading without energy."""
        return Reading(None, 0.0, {}, self.reason)
