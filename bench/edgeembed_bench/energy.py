"""What an inference costs in millijoules: windows of inferences, the machine's idle power, and what follows."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgeembed_bench.meters import EnergyMeter, NullMeter, Reading
from edgeembed_bench.stats import Spread, spread


@dataclass(frozen=True)
class EnergyWindow:
    """Some inferences and what the meter said of them.

    Attributes:
        inferences: How many; 0 if none were made.
        reading: What the meter said.
    """

    inferences: int
    reading: Reading


@dataclass(frozen=True)
class IdlePower:
    """What the machine uses while it does nothing of ours.

    Attributes:
        before: A window before the inferences.
        after: One after them; the two differ where something else ran, or the machine grew warm.
    """

    before: Reading
    after: Reading

    @property
    def before_w(self) -> float | None:
        """Watts before, of what counts; None if not measured."""
        return _power_w(self.before)

    @property
    def after_w(self) -> float | None:
        """Watts after, of what counts; None if not measured."""
        return _power_w(self.after)

    @property
    def total_w(self) -> float | None:
        """Watts of what counts: the mean of before and after, or the one of them that was measured; else None."""
        return _mean([power_w for power_w in (self.before_w, self.after_w) if power_w is not None])

    @property
    def power_w(self) -> dict[str, float] | None:
        """Watts by domain, as `total_w`; None if nothing was measured."""
        measured = [reading for reading in (self.before, self.after) if _power_w(reading) is not None]
        powers_w = [
            {name: value / reading.window_s for name, value in reading.domains_j.items()} for reading in measured
        ]
        means = {name: _mean([power[name] for power in powers_w]) for name in _in_all(powers_w)}
        return {name: mean for name, mean in means.items() if mean is not None} if measured else None


@dataclass(frozen=True)
class Energy:
    """Energy of inferences: the raw windows, and the figures derived from them.

    Attributes:
        source: Where the figures come from; None if there is no meter.
        idle: The machine's idle power; None if there is no meter.
        windows: The windows, those that failed included.
        reason: Why nothing was measured, one line; None if something was.
    """

    source: str | None
    idle: IdlePower | None
    windows: tuple[EnergyWindow, ...]
    reason: str | None

    @property
    def measured(self) -> tuple[EnergyWindow, ...]:
        """The windows that were measured."""
        return tuple(window for window in self.windows if window.inferences and _power_w(window.reading) is not None)

    @property
    def discarded(self) -> list[str]:
        """What was left out of the figures and why, one line each; empty if `reason` says that all was.

        A window is left out if its counters cannot be trusted; idle power, if it was not measured before or after.
        """
        if self.reason is not None:
            return []
        reasons = Counter(
            window.reading.reason or "the window held no inference"
            for window in self.windows
            if window not in self.measured
        )
        found = [f"{count} of {len(self.windows)} windows discarded: {why}" for why, count in reasons.items()]
        idle = {"before": self.idle.before, "after": self.idle.after} if self.idle else {}
        return found + [
            f"idle power {when} discarded: {reading.reason or 'no energy was read'}"
            for when, reading in idle.items()
            if _power_w(reading) is None
        ]

    @property
    def mj_per_inference(self) -> Spread | None:
        """Millijoules an inference of all that the counter saw, idle power included; None if not measured."""
        return _spread([_mj(window, window.reading.energy_j or 0.0) for window in self.measured])

    @property
    def mj_above_idle(self) -> Spread | None:
        """The same less idle power for as long; None if either was not measured.

        It may be below 0 where an inference costs less than idle power scatters.
        """
        idle_w = self.idle.total_w if self.idle else None
        if idle_w is None:
            return None
        return _spread([_mj(window, window.reading.energy_j or 0.0, idle_w) for window in self.measured])

    def domains_mj(self, *, above_idle: bool = False) -> dict[str, Spread]:
        """Give millijoules an inference by domain.

        Args:
            above_idle: Whether to subtract the domain's idle power.

        Returns:
            The spread of every domain that all measured windows know, and idle too where that is subtracted.
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
        return {name: spread(values) for name, values in samples.items()}


def energy_from(meter: EnergyMeter, idle: IdlePower | None, windows: Sequence[EnergyWindow]) -> Energy:
    """Put together what was measured.

    Args:
        meter: What measured it.
        idle: Idle power before and after.
        windows: The windows.

    Returns:
        The energy; its reason is the commonest one of the windows if none of them was measured.
    """
    energy = Energy(meter.source, idle, tuple(windows), None)
    if energy.measured:
        return energy
    if isinstance(meter, NullMeter):
        return Energy(None, None, tuple(windows), meter.reason)
    reasons = Counter(window.reading.reason or "the window held no inference" for window in windows)
    reason = reasons.most_common(1)[0][0] if reasons else "no window was measured"
    return Energy(meter.source, idle, tuple(windows), reason)


def measure_idle(meter: EnergyMeter, seconds: float | None = None) -> Reading:
    """Measure what the machine uses while this process sleeps.

    Args:
        meter: The meter; a `NullMeter` is not waited for.
        seconds: How long; the meter's least window if absent.
    """
    return measure_window(meter, _sleep, seconds).reading


def measure_window(meter: EnergyMeter, work: Callable[[float], int], seconds: float | None = None) -> EnergyWindow:
    """Measure one window of inferences.

    Args:
        meter: The meter; with a `NullMeter` no work is done.
        work: Given seconds, infers for at least that long and gives the number of inferences.
        seconds: How long; the meter's least window if absent.

    Raises:
        Exception: Whatever the work raises; the window is closed first.
    """
    meter.begin()
    if isinstance(meter, NullMeter):
        return EnergyWindow(0, meter.end())
    try:
        inferences = work(meter.window_s if seconds is None else seconds)
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


def _spread(samples: Sequence[float]) -> Spread | None:
    return spread(samples) if samples else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _in_all(mappings: Sequence[dict[str, float]]) -> list[str]:
    return [name for name in mappings[0] if all(name in mapping for mapping in mappings)] if mappings else []
