"""What a meter says of a window, and what every meter can do. Not measured is None, never 0."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Reading:
    """What a meter says of one window.

    Attributes:
        energy_j: Joules that count: all packages and their DRAM, or what the battery gave. None if not measured.
        window_s: Length of the window in seconds, between the reads of the counters themselves.
        domains_j: Joules by domain, summed over sockets: "package", "core", "uncore", "dram", "psys", or "battery".
            Core and uncore are parts of package, and package is part of psys. Empty if not measured; a domain is
            absent if it was not.
        reason: Why it was not measured and what to do, one line; None if it was.
    """

    energy_j: float | None
    window_s: float
    domains_j: dict[str, float]
    reason: str | None = None


class EnergyMeter(Protocol):
    """Something that measures the energy between two moments."""

    @property
    def source(self) -> str | None:
        """Where the figures come from; None for a meter that measures nothing."""

    @property
    def window_s(self) -> float:
        """Least seconds of a window, so that the counter's resolution errs by well below 1 %."""

    def begin(self) -> None:
        """Open a window."""

    def end(self) -> Reading:
        """Close the window and give its reading; whatever the counters do, this raises nothing."""


class NullMeter:
    """The meter of a machine without one: every reading is None with the same reason.

    Args:
        reason: Why nothing is measured and what to do, one line.
    """

    source: str | None = None
    window_s = 0.0

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def begin(self) -> None:
        """Open a window."""

    def end(self) -> Reading:
        """Give no energy, and the reason."""
        return Reading(None, 0.0, {}, self.reason)
