"""Energy meter for RAPL, the running average power limit counters of Intel and AMD processors, read by pyJoules.

Linux shows the counters in its powercap tree:

/sys/class/powercap/
├── intel-rapl/                         also AMD's, from Linux 5.8 on
│   ├── intel-rapl:0/                   name: package-0, or package-0-die-1
│   │   ├── energy_uj, max_energy_range_uj
│   │   ├── intel-rapl:0:0/             name: core, uncore or dram
│   │   └── intel-rapl:0:1/
│   └── intel-rapl:1/                   name: package-1, or psys
├── intel-rapl-mmio/                    the same package, read through memory-mapped registers
├── intel-rapl:0 -> .../intel-rapl:0    links to the directories above
└── ...

pyJoules 0.5.1 stops its search at the first gap in the socket numbers, does not support dies, psys or AMD's tree, and
leaves files open. Therefore this module finds the counters and closes the files, and pyJoules reads the values.

Some processors of several dies, such as the first two generations of AMD's Zen, have one counter per socket, which
Linux shows once for each die (https://github.com/mlco2/codecarbon/issues/1274). Such mirrored counters count once.
"""

import contextlib
import logging
import math
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from edgeembed_bench.energy import Reading

POWERCAP = Path("/sys/class/powercap")
# Above the power of any package or memory: the largest server processors are designed for 500 W.
MAX_POWER_W = 1000.0
_TREES = ("intel-rapl", "amd-rapl", "intel-rapl-mmio")
_DOMAINS = ("package", "core", "uncore", "dram", "psys")
_UPDATE_S = 0.001  # the counters' own update interval
# Two reads of one counter differ by what it advances meanwhile. Its power at that moment can exceed its mean power.
_MIRROR_TOLERANCE = 10.0
_MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class RaplCounter:
    """One energy counter.

    Attributes:
        file: The file of the counter's value, in microjoules.
        name: Linux's name of the counter, such as package-0-die-1.
        range_uj: Value at which the counter wraps around to 0; None if unknown.
        package: The package that the counter belongs to, without the die, such as package-0.
    """

    file: Path
    name: str
    range_uj: int | None
    package: str

    @property
    def domain(self) -> str:
        """The name without socket and die, such as package."""
        return self.name.partition("-")[0]

    @property
    def is_summed(self) -> bool:
        """Whether the counter is part of the total. The others are parts of packages, or include them."""
        return self.domain in {"package", "dram"}


@dataclass(frozen=True)
class _Snapshot:
    """All counter values at one moment; empty, with the reason, if a counter could not be read."""

    time_s: float
    read_s: float
    energies_uj: tuple[float, ...]
    reason: str | None = None


@dataclass(frozen=True)
class _Difference:
    """Values of one counter at both ends of a window, and its energy; 0, with the reason, if it cannot be trusted."""

    counter: RaplCounter
    before_uj: float
    after_uj: float
    energy_uj: float
    reason: str | None = None


class RaplMeter:
    """Energy of the packages and DRAM of all sockets.

    A counter that is lower at the end of a window than at its beginning has wrapped around only if `MAX_POWER_W` could
    have taken it past the end of its range to the new value within the window. Otherwise it ran backwards, was reset or
    wrapped before the end of its range, and the window is discarded. AMD's range of 65 kJ lasts a minute at 1,000 W,
    Intel's usual range of 262 kJ four times as long. In a longer window, a second wrap could go unnoticed.

    Dies of one package whose counters hold the same value at both ends of a window, apart from what the package uses
    between two reads, mirror one counter, which is counted once.

    Args:
        counters: The counters of one or more sockets.
    """

    min_window_s = 1.0  # counters advance every millisecond, so begin and end err by 0.2 % at most

    def __init__(self, counters: Sequence[RaplCounter]) -> None:
        self._counters = tuple(counters)
        self._device = _open_device(self._counters)
        self._begin = _Snapshot(0.0, 0.0, (), "no window was begun")

    @property
    def source(self) -> str:
        """Description of the domains in the total and the number of sockets."""
        sockets = len({counter.package for counter in self._counters if counter.domain == "package"})
        dram = " + DRAM" if any(counter.domain == "dram" for counter in self._counters) else ""
        return f"RAPL package{dram}, by pyJoules, {max(sockets, 1)} socket{'s' if sockets > 1 else ''}"

    def begin(self) -> None:
        """Open a window."""
        self._begin = self._snapshot()

    def end(self) -> Reading:
        """Close the window and return the energy of all sockets."""
        begin, end = self._begin, self._snapshot()
        window_s = end.time_s - begin.time_s
        if reason := begin.reason or end.reason:
            return Reading(None, window_s, {}, reason)
        differences = _without_mirrors(
            [
                _difference(counter, before, after, window_s)
                for counter, before, after in zip(self._counters, begin.energies_uj, end.energies_uj, strict=True)
            ],
            _MIRROR_TOLERANCE * max(_UPDATE_S, begin.read_s, end.read_s) / max(window_s, _UPDATE_S),
        )
        for each in differences:
            if each.reason and each.counter.is_summed:
                return Reading(None, window_s, {}, each.reason)
        energy_j = sum(each.energy_uj for each in differences if each.counter.is_summed) / 1e6
        return Reading(energy_j, window_s, _sum_by_domain(differences))

    def _snapshot(self) -> _Snapshot:
        for _ in range(_MAX_ATTEMPTS):
            start_s = time.perf_counter()
            try:
                energies_uj = tuple(self._device.get_energy())
            except (OSError, ValueError) as error:
                return _Snapshot(start_s, 0.0, (), _read_error(error, self._counters))
            stop_s = time.perf_counter()
            # If the scheduler interrupted the read, the time of the values is unknown.
            if stop_s - start_s < _UPDATE_S:
                break
        return _Snapshot((start_s + stop_s) / 2, stop_s - start_s, energies_uj)


def find_counters(powercap: Path = POWERCAP) -> tuple[RaplCounter, ...]:
    """Return the counters of all sockets, each once.

    Args:
        powercap: Directory of the powercap tree.

    Returns:
        The counters of the first control type that has packages; empty if none has.
    """
    trees = (_counters(powercap / name) for name in _TREES)
    return next((tree for tree in trees if any(counter.domain == "package" for counter in tree)), ())


def unreadable_reason(counters: Sequence[RaplCounter]) -> str | None:
    """Return why the counters cannot be read and what to do, one line; None if they can be read."""
    try:
        for counter in counters:
            float(counter.file.read_text(encoding="ascii"))
    except ValueError:
        return f"a RAPL counter cannot be read: {counter.file} contains no number"
    except OSError as error:
        return _read_error(error, counters)
    return None


def _counters(tree: Path) -> tuple[RaplCounter, ...]:
    zones = f"{tree.name}:*"
    # Sorted, a zone precedes the zones within it.
    counters = [_counter(zone, tree) for zone in sorted([*tree.glob(zones), *tree.glob(f"{zones}/{zones}")])]
    return tuple(counter for counter in counters if counter is not None and counter.domain in _DOMAINS)


def _counter(zone: Path, tree: Path) -> RaplCounter | None:
    name = _name(zone)
    if name is None:
        return None
    try:
        range_uj = int((zone / "max_energy_range_uj").read_text(encoding="ascii"))
    except (OSError, ValueError):
        range_uj = None
    outer = name if zone.parent == tree else _name(zone.parent) or ""
    return RaplCounter(zone / "energy_uj", name, range_uj, "-".join(outer.split("-")[:2]))


def _name(zone: Path) -> str | None:
    try:
        return (zone / "name").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None


def _read_error(error: OSError | ValueError, counters: Sequence[RaplCounter]) -> str:
    """Return one line that explains a read error and what to do; a chmod command covers all counters."""
    if isinstance(error, PermissionError):
        chmod = shlex.join(["sudo", "chmod", "a+r", *(str(counter.file) for counter in counters)])
        zones = counters[0].file.parent.name.partition(":")[0] + ":*"
        rule = f'ACTION=="add", SUBSYSTEM=="powercap", KERNEL=="{zones}", RUN+="/bin/chmod a+r /sys%p/energy_uj"'
        return (
            f"permission denied: {error.filename} belongs to root; run: {chmod}; "
            f"to keep that after a reboot: echo '{rule}' | sudo tee /etc/udev/rules.d/70-powercap.rules"
        )
    if isinstance(error, FileNotFoundError):
        return (
            f"a RAPL counter disappeared: {error.filename}; load its driver (sudo modprobe intel_rapl_msr), run again"
        )
    return f"a RAPL counter cannot be read: {error}"


def _difference(counter: RaplCounter, before: float, after: float, window_s: float) -> _Difference:
    max_uj, range_uj = MAX_POWER_W * window_s * 1e6, counter.range_uj or 0
    is_wrapped = after < before
    energy_uj = after - before + (range_uj if is_wrapped else 0)
    if after == before:
        problem, remedy = "stood still, as in virtual machines", "measure on the machine itself"
    elif is_wrapped and not range_uj:
        problem, remedy = "ran backwards and its range is unknown", "run again"
    elif is_wrapped and max_uj >= range_uj:
        problem = f"ran backwards or wrapped around, and its range of {range_uj / 1e6:g} J is too small to tell which"
        remedy = "measure shorter windows"
    elif is_wrapped and (before > range_uj or energy_uj > max_uj):
        problem, remedy = "ran backwards or wrapped around before the end of its range", "run again"
    elif energy_uj > max_uj:
        problem, remedy = f"advanced by more than {MAX_POWER_W:,.0f} W", "run again"
    else:
        return _Difference(counter, before, after, energy_uj)
    return _Difference(counter, before, after, 0.0, f"a RAPL counter {problem}: {counter.file}; {remedy}")


def _without_mirrors(differences: Sequence[_Difference], drift: float) -> list[_Difference]:
    """Drop the dies that mirror another die of their package, and the counters within them that do so too.

    Args:
        differences: All counters, each zone before the zones within it.
        drift: Fraction of a counter's energy by which two of its reads may differ.

    Returns:
        The other counters, in the same order.
    """
    kept: list[_Difference] = []
    mirrors: set[Path] = set()
    for each in differences:
        zone = each.counter.file.parent
        may_mirror = each.counter.domain == "package" or zone.parent in mirrors
        if may_mirror and any(_is_mirror(each, other, drift) for other in kept):
            mirrors.add(zone)
        else:
            kept.append(each)
    return kept


def _is_mirror(one: _Difference, other: _Difference, drift: float) -> bool:
    if (one.counter.package, one.counter.domain) != (other.counter.package, other.counter.domain):
        return False
    range_uj = one.counter.range_uj or math.inf
    apart_uj = [abs(one.before_uj - other.before_uj), abs(one.after_uj - other.after_uj)]
    # One of them may have been read before the counter wrapped around, the other after it.
    return max(min(apart, abs(range_uj - apart)) for apart in apart_uj) <= drift * one.energy_uj


def _sum_by_domain(differences: Sequence[_Difference]) -> dict[str, float]:
    by_domain: dict[str, list[_Difference]] = {}
    for each in differences:
        by_domain.setdefault(each.counter.domain, []).append(each)
    # Without one socket's counter the sum over sockets would be too small.
    return {
        domain: sum(each.energy_uj for each in parts) / 1e6
        for domain, parts in by_domain.items()
        if not any(each.reason for each in parts)
    }


def _open_device(counters: Sequence[RaplCounter]) -> Any:
    """Return a pyJoules device that reads these counters, in this order."""
    with _without_pyjoules_warnings():
        from pyJoules.device.rapl_device import RaplDevice

    class CounterDevice(RaplDevice):  # type: ignore[misc]  # pyJoules has no types
        def available_domains(self) -> list[RaplCounter]:
            return list(counters)

        def _get_domain_file_name(self, counter: RaplCounter) -> str:
            return str(counter.file)

        def _read_energy_value(self, api_file: TextIO) -> float:
            with api_file:
                try:
                    value: float = super()._read_energy_value(api_file)
                except ValueError:
                    raise ValueError(f"{api_file.name} contains no number") from None
                except OSError as error:
                    raise OSError(error.errno, error.strerror, api_file.name) from error
            return value

    device = CounterDevice()
    device.configure()
    return device


@contextlib.contextmanager
def _without_pyjoules_warnings() -> Iterator[None]:
    """Drop pyJoules's log records within a `with` block: on import it warns that there is no NVIDIA library.

    pyJoules calls `logging.warning`, so the filter is on the root logger, for records of pyJoules's files alone. The
    null handler keeps that call from configuring the root logger.
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
