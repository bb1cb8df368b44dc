"""The machine that a measurement was made on, and what else went on there."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

PACKAGES = ("edgeembed", "edgeembed-runtime", "numpy", "scipy")
_BUSY = 0.5
_BUSY_SHARE = 0.25  # of the cores; the rest of a large machine leaves the few in use alone
_STOLEN = 0.02


@dataclass(frozen=True)
class Machine:
    """What decides how fast an encoder runs here.

    Attributes:
        cpu: The processor's name.
        flags: Instruction sets and features that it says it has; empty where the system does not tell.
        governor: What decides its clock, such as "performance"; None where the system does not tell.
        cores: Logical cores of the machine.
        cores_allowed: Logical cores that this process may use.
        ram_bytes: Main memory.
        system: Operating system and its version.
        python: Version of the interpreter that ran the bench; each subject's own is among its facts.
        versions: Versions of the bench's own packages; None for one that is absent. Each subject has its own.
    """

    cpu: str
    flags: tuple[str, ...]
    governor: str | None
    cores: int
    cores_allowed: int
    ram_bytes: int
    system: str
    python: str
    versions: dict[str, str | None]


@dataclass(frozen=True)
class Load:
    """What else went on while the bench ran.

    Attributes:
        load_average: Processes that wanted to run in the minute before; None where the system does not tell.
        stolen_share: Share of the cores' time that a virtual machine's host gave to others meanwhile; None likewise.
        on_battery: Whether the machine ran on its battery; None if it has none, or the system does not tell.
        cores: Logical cores of the machine, which share such work.
    """

    load_average: float | None
    stolen_share: float | None
    on_battery: bool | None
    cores: int = 1

    @property
    def reasons(self) -> list[str]:
        """Why the figures may be unsteady, one line each, with what to do."""
        found = []
        if self.load_average is not None and self.load_average > max(_BUSY, self.cores * _BUSY_SHARE):
            found.append(f"the load average was {self.load_average:.1f} before it began: close other programs")
        if self.stolen_share is not None and self.stolen_share > _STOLEN:
            found.append(f"this virtual machine's host took {self.stolen_share:.0%} of its time: choose a quieter one")
        if self.on_battery:
            found.append("the machine ran on its battery, which slows its clock: plug it in")
        return found


def this_machine() -> Machine:
    """Describe the machine and the packages of this process."""
    cores = os.cpu_count() or 1
    cpuinfo = _cpuinfo()
    return Machine(
        cpu=cpuinfo.get("model name") or platform.processor() or platform.machine(),
        flags=tuple(sorted((cpuinfo.get("flags") or cpuinfo.get("Features") or "").split())),
        governor=_governor(),
        cores=cores,
        cores_allowed=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores,
        ram_bytes=psutil.virtual_memory().total,
        system=platform.platform(),
        python=platform.python_version(),
        versions={package: _version(package) for package in PACKAGES},
    )


class LoadWatch:
    """Notes what else goes on from its making to `found`."""

    def __init__(self) -> None:
        self._average = psutil.getloadavg()[0]
        self._before = psutil.cpu_times()

    def found(self) -> Load:
        """Return what else went on since this was made."""
        after = psutil.cpu_times()
        stolen = getattr(after, "steal", None)
        whole = sum(after) - sum(self._before)
        share = None if stolen is None or whole <= 0 else (stolen - self._before.steal) / whole
        return Load(self._average, share, _on_battery(), os.cpu_count() or 1)


def _on_battery() -> bool | None:
    """Return whether the machine runs on its battery; None if it has none, or the system does not tell."""
    try:
        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    except OSError:  # psutil lists /sys/class/power_supply, which containers and many servers lack
        return None
    if battery is None or battery.power_plugged is None:
        return None
    return not battery.power_plugged


def _cpuinfo(file: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    if not file.is_file():
        return {}
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    pairs = (line.partition(":") for line in reversed(lines))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _governor(root: Path = Path("/sys/devices/system/cpu")) -> str | None:
    found = sorted({file.read_text(encoding="ascii").strip() for file in root.glob("cpu*/cpufreq/scaling_governor")})
    return ", ".join(found) or None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
