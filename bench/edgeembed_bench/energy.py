"""Energy of inferences: the meter protocol, measurement windows, idle power, and millijoules per inference.

Energy that was not measured is None with a reason, never 0.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from edgeembed_bench.stats import Quartiles

_NO_INFERENCE = "the window contained no inference"


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


@dataclass(frozen=True)
class EnergyWindow:
    """One measurement window: the number of inferences and the meter's reading.

    Attributes:
        inferences: Number of inferences; 0 if none were made.
        reading: The meter's reading.
    """

    inferences: int
    reading: Reading


@dataclass(frozen=True)
class IdlePower:
    """Idle power of the machine, before and after the benchmark.

    Attributes:
        before: Reading of an idle window before the inferences.
        after: Reading of an idle window after the inferences; it differs if other work ran or the machine warmed up.
    """

    before: Reading
    after: Reading

    @property
    def before_w(self) -> float | None:
        """Idle power before the inferences in watts; None if not measured."""
        return _power_w(self.before)

    @property
    def after_w(self) -> float | None:
        """Idle power after the inferences in watts; None if not measured."""
        return _power_w(self.after)

    @property
    def total_w(self) -> float | None:
        """Mean of `before_w` and `after_w` in watts; if only one was measured, that one; None if neither was."""
        return _mean([power_w for power_w in (self.before_w, self.after_w) if power_w is not None])

    @property
    def power_w(self) -> dict[str, float] | None:
        """Idle power in watts by domain, averaged like `total_w`; None if nothing was measured."""
        measured = [reading for reading in (self.before, self.after) if _power_w(reading) is not None]
        powers_w = [
            {name: value / reading.window_s for name, value in reading.domains_j.items()} for reading in measured
        ]
        means = {name: _mean([power[name] for power in powers_w]) for name in _in_all(powers_w)}
        return {name: mean for name, mean in means.items() if mean is not None} if measured else None


@dataclass(frozen=True)
class Energy:
    """Energy of a subject's inferences: the raw windows and the figures derived from them.

    Attributes:
        source: Description of the meter's counters; None if there is no meter.
        idle: Idle power of the machine; None if there is no meter.
        windows: All windows, including those that were not measured.
        reason: Why nothing was measured, one line; None if at least one window was.
    """

    source: str | None
    idle: IdlePower | None
    windows: tuple[EnergyWindow, ...]
    reason: str | None

    @property
    def measured(self) -> tuple[EnergyWindow, ...]:
        """The windows whose energy was measured."""
        return tuple(window for window in self.windows if window.inferences and _power_w(window.reading) is not None)

    @property
    def discarded(self) -> list[str]:
        """One line for each reason why windows or idle power were discarded; empty if `reason` is set."""
        if self.reason is not None:
            return []
        reasons = Counter(
            window.reading.reason or _NO_INFERENCE for window in self.windows if window not in self.measured
        )
        windows = [f"{count} of {len(self.windows)} windows discarded: {reason}" for reason, count in reasons.items()]
        idle = {"before": self.idle.before, "after": self.idle.after} if self.idle else {}
        return windows + [
            f"idle power {when} discarded: {reading.reason or 'no energy was read'}"
            for when, reading in idle.items()
            if _power_w(reading) is None
        ]

    @property
    def mj_per_inference(self) -> Quartiles | None:
        """Millijoules per inference, idle power included; None if not measured."""
        return _spread([_mj(window, window.reading.energy_j or 0.0) for window in self.measured])

    @property
    def mj_above_idle(self) -> Quartiles | None:
        """Millijoules per inference above idle power; None if either was not measured.

        It can be negative if the energy of an inference is smaller than the noise of idle power.
        """
        idle_w = self.idle.total_w if self.idle else None
        if idle_w is None:
            return None
        return _spread([_mj(window, window.reading.energy_j or 0.0, idle_w) for window in self.measured])

    def domains_mj(self, *, above_idle: bool = False) -> dict[str, Quartiles]:
        """Return millijoules per inference by domain.

        Args:
            above_idle: Whether to subtract the domain's idle power.

        Returns:
            Median and quartiles in millijoules of each domain that all measured windows have. With `above_idle`, idle
            power must have the domain too.
        """
        idle_w = (self.idle.power_w if self.idle else None) or {}
        names = _in_all([window.reading.domains_j for window in self.measured])
        samples = {
            name: [
                _mj(window, window.reading.domains_j[name], idle_w[name] if above_idle else 0.0)
                for window in self.measured
            ]
            for name in names
            if name in idle_w or not above_idle
        }
        return {name: Quartiles.of(values) for name, values in samples.items()}


def energy_from(meter: EnergyMeter, idle: IdlePower | None, windows: Sequence[EnergyWindow]) -> Energy:
    """Combine windows and idle power into an `Energy`.

    Args:
        meter: The meter.
        idle: Idle power before and after the inferences.
        windows: The measurement windows.

    Returns:
        The energy; if no window was measured, with the most common reason of the windows.
    """
    energy = Energy(meter.source, idle, tuple(windows), None)
    if energy.measured:
        return energy
    if isinstance(meter, NullMeter):
        return Energy(None, None, tuple(windows), meter.reason)
    reasons = Counter(window.reading.reason or _NO_INFERENCE for window in windows)
    reason = reasons.most_common(1)[0][0] if reasons else "no window was measured"
    return Energy(meter.source, idle, tuple(windows), reason)


def measure_idle(meter: EnergyMeter, seconds: float | None = None) -> Reading:
    """Measure idle power while this process sleeps.

    Args:
        meter: The meter; with a `NullMeter` the function returns at once.
        seconds: Length of the window; the meter's minimum by default.
    """
    return measure_window(meter, _sleep, seconds).reading


def measure_window(meter: EnergyMeter, work: Callable[[float], int], seconds: float | None = None) -> EnergyWindow:
    """Measure one window of inferences.

    Args:
        meter: The meter; with a `NullMeter` no work is done.
        work: Function that runs inferences for at least the given seconds and returns their number.
        seconds: Length of the window; the meter's minimum by default.

    Raises:
        Exception: Whatever `work` raises; the window is closed first.
    """
    meter.begin()
    if isinstance(meter, NullMeter):
        return EnergyWindow(0, meter.end())
    try:
        inferences = work(meter.min_window_s if seconds is None else seconds)
    finally:
        reading = meter.end()
    return EnergyWindow(inferences, reading)


def _sleep(seconds: float) -> int:
    time.sleep(seconds)
    return 0


def _power_w(reading: Reading) -> float | None:
    if reading.energy_j is None or reading.window_s <= 0:
        return None
    return reading.energy_j / reading.window_s


def _mj(window: EnergyWindow, energy_j: float, idle_w: float = 0.0) -> float:
    return (energy_j - idle_w * window.reading.window_s) * 1e3 / window.inferences


def _spread(samples: Sequence[float]) -> Quartiles | None:
    return Quartiles.of(samples) if samples else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _in_all(mappings: Sequence[dict[str, float]]) -> list[str]:
    return [name for name in mappings[0] if all(name in mapping for mapping in mappings)] if mappings else []
