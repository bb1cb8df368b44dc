"""The meter over a processor's own counters: RAPL, the running average power limit of Intel and AMD."""

import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeembed_runtime.errors import MissingExtraError

from edgeembed_bench.meters.base import Reading
from edgeembed_bench.meters.counters import Counter, explain

# No counter of a package or of memory draws as much: the largest server processors are made for 500 W.
MAX_POWER_W = 1000.0
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

    A counter that is lower at the end of a window than at its beginning has wrapped around only if `MAX_POWER_W` could
    have taken it to the end of its range and on to the new value in that time. Otherwise it ran backwards, was reset,
    or wrapped before the end of its range, and the window is not measured. AMD's range of 65 kJ lasts a minute at
    1,000 W, Intel's usual 262 kJ four times as long; in a longer window a wrap could not be told from two.

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
        advances = [
            _advance(counter, before, after, window_s)
            for counter, before, after in zip(self._counters, begun.energies_uj, ended.energies_uj, strict=True)
        ]
        for each in advances:
            if each.reason and each.counter.counts:
                return Reading(None, window_s, {}, each.reason)
        energy_j = sum(each.energy_uj for each in advances if each.counter.counts) / 1e6
        return Reading(energy_j, window_s, _by_domain_j(advances))


@dataclass(frozen=True)
class _Advance:
    """What a counter counted in a window, in microjoules; 0, and the reason, if that is not to be trusted."""

    counter: Counter
    energy_uj: float
    reason: str | None = None


def _advance(counter: Counter, before: float, after: float, window_s: float) -> _Advance:
    most_uj, range_uj = MAX_POWER_W * window_s * 1e6, counter.range_uj or 0
    is_wrap = after < before
    energy_uj = after - before + (range_uj if is_wrap else 0)
    if after == before:
        problem, remedy = "stood still, as in virtual machines", "measure on the machine itself"
    elif is_wrap and not range_uj:
        problem, remedy = "ran backwards and its range is unknown", "run again"
    elif is_wrap and most_uj >= range_uj:
        problem = f"ran backwards or wrapped around, and its range of {range_uj / 1e6:g} J is too small to tell which"
        remedy = "measure shorter windows"
    elif is_wrap and (before > range_uj or energy_uj > most_uj):
        problem, remedy = "ran backwards or wrapped around before the end of its range", "run again"
    elif energy_uj > most_uj:
        problem, remedy = f"advanced by more than {MAX_POWER_W:,.0f} W", "run again"
    else:
        return _Advance(counter, energy_uj)
    return _Advance(counter, 0.0, f"a RAPL counter {problem}: {counter.file}; {remedy}")


def _by_domain_j(advances: Sequence[_Advance]) -> dict[str, float]:
    found: dict[str, list[_Advance]] = {}
    for each in advances:
        found.setdefault(each.counter.domain, []).append(each)
    # Where one socket's counter says nothing, the sum over sockets would be too small.
    return {
        domain: sum(each.energy_uj for each in parts) / 1e6
        for domain, parts in found.items()
        if not any(each.reason for each in parts)
    }


def _device(counters: Sequence[Counter]) -> Any:
    try:
        with _without_pyjoules_warnings():
            from edgeembed_bench.meters.pyjoules import CounterDevice
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyJoules", "energy") from error
    return CounterDevice(counters)


@contextlib.contextmanager
def _without_pyjoules_warnings() -> Iterator[None]:
    """Drop what pyJoules logs within a `with` block: on import it warns that there is no NVIDIA library.

    It has no logger of its own and calls `logging.warning`, so the filter is on the root logger, for records of its
    files alone. With a handler there, that call does not configure the root logger either.
    """

    def is_other(record: logging.LogRecord) -> bool:
        return "pyJoules" not in Path(record.pathname).parts

    handler = logging.NullHandler()
    logging.root.addHandler(handler)
    logging.root.addFilter(is_other)
    try:
        yield
    finally:
        logging.root.removeFilter(is_other)
        logging.root.removeHandler(handler)
