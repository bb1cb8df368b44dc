"""The meter over a processor's own counters: RAPL, the running average power limit of Intel and AMD."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgeembed_runtime.errors import MissingExtraError

from edgeembed_bench.meters.counters import Counter, explain
from edgeembed_bench.meters.readings import Reading

_TIGHT_S = 0.001  # what the counters themselves take between updates
_TRIES = 5


@dataclass(frozen=True)
class _Snapshot:
    """All counters at one moment; no energies, and the reason, if they could not be read."""

    time_s: float
    energies_uj: tuple[float, ...]
    reason: str | None = None


class RaplMeter:
    """Whole packages plus DRAM of all sockets, read by pyJoules.

    A counter that starts again at 0 is followed once a window, by the range that Linux gives for it. A second time
    in the same window could not be seen: AMD's range of 65 kJ lasts 5 minutes at 200 W, Intel's usual 262 kJ four
    times as long, so windows are to stay below that.

    Args:
        counters: The counters, those of one socket or more.

    Raises:
        MissingExtraError: If pyJoules is not installed.
    """

    window_s = 1.0  # counters advance every millisecond, so begin and end err by 0.2 % at most

    def __init__(self, counters: Sequence[Counter]) -> None:
        self._counters = tuple(counters)
        self._device = _device(self._counters)
        self._begun = _Snapshot(0.0, (), "no window was begun")

    @property
    def source(self) -> str:
        """The domains that count, and of how many sockets."""
        sockets = len({counter.name.split("-")[1] for counter in self._counters if counter.name.startswith("package-")})
        dram = " + DRAM" if any(counter.domain == "dram" for counter in self._counters) else ""
        return f"RAPL package{dram}, by pyJoules, {max(sockets, 1)} socket{'s' if sockets > 1 else ''}"

    def begin(self) -> None:
        """Open a window."""
        self._begun = self._snapshot()

    def end(self) -> Reading:
        """Close the window and give the energy of all sockets in it."""
        return self._reading(self._begun, self._snapshot())

    def _snapshot(self) -> _Snapshot:
        for _ in range(_TRIES):
            start_s = time.perf_counter()
            try:
                energies_uj = tuple(self._device.get_energy())
            except (OSError, ValueError) as error:
                return _Snapshot(start_s, (), explain(error, self._counters))
            stop_s = time.perf_counter()
            # A read that the scheduler interrupted does not tell when its values were true.
            if stop_s - start_s < _TIGHT_S:
                break
        return _Snapshot((start_s + stop_s) / 2, energies_uj)

    def _reading(self, begun: _Snapshot, ended: _Snapshot) -> Reading:
        window_s = ended.time_s - begun.time_s
        if reason := begun.reason or ended.reason:
            return Reading(None, window_s, {}, reason)
        advanced_uj = {
            counter: _advance_uj(counter, before, after)
            for counter, before, after in zip(self._counters, begun.energies_uj, ended.energies_uj, strict=True)
        }
        if reason := _why_untrusted(advanced_uj):
            return Reading(None, window_s, {}, reason)
        energy_j = sum(value for counter, value in advanced_uj.items() if counter.counts) / 1e6
        return Reading(energy_j, window_s, _by_domain_j(advanced_uj))


def _advance_uj(counter: Counter, before: float, after: float) -> float:
    return after - before + (0 if after >= before else counter.range_uj or 0)


def _why_untrusted(advanced_uj: dict[Counter, float]) -> str | None:
    for counter, value in advanced_uj.items():
        if counter.counts and value < 0:
            return f"a RAPL counter ran backwards and its range is unknown: {counter.file}; run again"
        if counter.counts and value == 0:
            return f"a RAPL counter stood still, as in virtual machines: {counter.file}; measure on the machine itself"
    return None


def _by_domain_j(advanced_uj: dict[Counter, float]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for counter, value in advanced_uj.items():
        values.setdefault(counter.domain, []).append(value)
    # Where one socket's counter says nothing, the sum over sockets would be too small.
    return {domain: sum(found) / 1e6 for domain, found in values.items() if min(found) > 0}


def _device(counters: Sequence[Counter]) -> Any:
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)  # on import pyJoules warns that there is no NVIDIA library
    try:
        from edgeembed_bench.meters.pyjoules import CounterDevice
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyJoules", "energy") from error
    finally:
        logging.disable(level)
    return CounterDevice(counters)
