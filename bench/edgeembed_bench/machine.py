"""The machine that a benchmark runs on, and its load from other work.

py-cpuinfo names the processor. On Linux /proc/cpuinfo has the same name within a millisecond, but on macOS, Windows and
Arm boards the standard library returns only "arm" or a family number. py-cpuinfo takes 1.3 s on x86, because it sleeps
for one second to count clock cycles, so its result is cached.
"""

import functools
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import cpuinfo
import psutil
from edgeembed_runtime.errors import InputError

PACKAGES = ("edgeembed", "edgeembed-runtime", "numpy", "scipy")
_MAX_LOAD_AVERAGE = 0.5
_MAX_LOAD_PER_CORE = 0.25  # on a machine of many cores, other work seldom runs on the few that are measured
_MAX_STEAL_FRACTION = 0.02


@dataclass(frozen=True)
class Machine:
    """Hardware and software that determine how fast an encoder runs.

    Attributes:
        cpu: Name of the processor.
        flags: Instruction sets and features of the processor, sorted; empty if unknown.
        governor: CPU frequency governor, such as "performance"; None if unknown.
        cores: Logical cores of the machine.
        available_cores: Logical cores that this process may use.
        ram_bytes: Main memory in bytes.
        system: Operating system and its version.
        python: Version of the benchmark's Python; `ModelInfo` has each subject's.
        versions: Versions of the benchmark's own packages; None if not installed. `ModelInfo` has each subject's.
    """

    cpu: str
    flags: tuple[str, ...]
    governor: str | None
    cores: int
    available_cores: int
    ram_bytes: int
    system: str
    python: str
    versions: dict[str, str | None]


@dataclass(frozen=True)
class Load:
    """Load of the machine by other work during a benchmark.

    Attributes:
        load_average: Load average over the minute before the benchmark; None if unknown.
        steal_fraction: Fraction of CPU time, 0 to 1, that the host of a virtual machine gave to other guests (steal
            time); None if unknown.
        on_battery: Whether the machine ran on its battery; None if it has none or if unknown.
        cores: Logical cores of the machine.
    """

    load_average: float | None
    steal_fraction: float | None
    on_battery: bool | None
    cores: int = 1

    @property
    def reasons(self) -> list[str]:
        """One line for each reason why the results may be unstable, with what to do."""
        reasons = []
        if self.load_average is not None and self.load_average > max(
            _MAX_LOAD_AVERAGE, self.cores * _MAX_LOAD_PER_CORE
        ):
            reasons.append(f"the load average was {self.load_average:.1f} before it began: close other programs")
        if self.steal_fraction is not None and self.steal_fraction > _MAX_STEAL_FRACTION:
            reasons.append(
                f"this virtual machine's host took {self.steal_fraction:.0%} of its CPU time: use a less busy host"
            )
        if self.on_battery:
            reasons.append("the machine ran on its battery, which slows its clock: plug it in")
        return reasons


def this_machine() -> Machine:
    """Return a description of this machine and of the packages of this process."""
    processor = _processor()
    return Machine(
        cpu=processor.get("brand_raw") or platform.processor() or platform.machine(),
        flags=tuple(sorted(processor.get("flags", ()))),
        governor=_governor(),
        cores=_cores(),
        available_cores=_available_cores(),
        ram_bytes=_ram_bytes(),
        system=platform.platform(),
        python=platform.python_version(),
        versions={package: _version(package) for package in PACKAGES},
    )


def affinity() -> set[int] | None:
    """Return the numbers of the cores that this thread may use; None on systems that pin no process, such as macOS."""
    if not hasattr(psutil.Process, "cpu_affinity"):
        return None
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)  # works without /proc, which psutil needs
    return set(psutil.Process().cpu_affinity())


def set_affinity(cores: Iterable[int]) -> None:
    """Pin this thread, and the processes that it starts, to cores; only where `affinity` returns any."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    else:
        psutil.Process().cpu_affinity(list(cores))


def check_threads(threads: int) -> None:
    """Raise InputError if more threads are requested than cores are available to this process.

    Args:
        threads: The requested number of threads.

    Raises:
        InputError: If there are fewer cores.
    """
    cores = _available_cores()
    if threads > cores:
        raise InputError(f"{threads} threads requested; expected at most {cores}, the cores that this process may use")


class LoadWatch:
    """Measures the load of the machine from the creation of this object to the call of `load`."""

    def __init__(self) -> None:
        self._average = _load_average()
        self._before = _cpu_times()

    def load(self) -> Load:
        """Return the load since this object was created."""
        return Load(self._average, self._steal_fraction(), _on_battery(), _cores())

    def _steal_fraction(self) -> float | None:
        before, after = self._before, _cpu_times()
        if before is None or after is None or not hasattr(after, "steal"):
            return None
        total_s = sum(after) - sum(before)
        return (after.steal - before.steal) / total_s if total_s > 0 else None


def _load_average() -> float | None:
    try:
        return float(psutil.getloadavg()[0])
    except OSError:
        return None


def _cpu_times() -> Any:
    """Return psutil's CPU times; None where /proc is hidden."""
    try:
        return psutil.cpu_times()
    except OSError:
        return None


def _ram_bytes() -> int:
    try:
        return int(psutil.virtual_memory().total)
    except OSError:  # /proc is hidden
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _on_battery() -> bool | None:
    """Return whether the machine runs on its battery; None if it has none or if unknown."""
    try:
        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    except OSError:  # psutil lists /sys/class/power_supply, which containers and many servers lack
        return None
    if battery is None or battery.power_plugged is None:
        return None
    return not battery.power_plugged


@functools.cache
def _processor() -> dict[str, Any]:
    """Return py-cpuinfo's description of the processor; empty if the architecture is unknown."""
    try:
        description: dict[str, Any] = cpuinfo.get_cpu_info()
    except Exception:  # noqa: BLE001  # py-cpuinfo raises a bare Exception on an architecture that it does not know
        return {}
    return description


def _cores() -> int:
    return psutil.cpu_count() or 1


def _available_cores() -> int:
    allowed = affinity()
    return _cores() if allowed is None else len(allowed)


def _governor(root: Path = Path("/sys/devices/system/cpu")) -> str | None:
    governors = sorted(
        {file.read_text(encoding="ascii").strip() for file in root.glob("cpu*/cpufreq/scaling_governor")}
    )
    return ", ".join(governors) or None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
