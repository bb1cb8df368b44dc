"""The energy counters that Linux shows of processors, found in its powercap tree.

/sys/class/powercap/
├── intel-rapl/                         also AMD's, from Linux 5.8 on
│   ├── intel-rapl:0/                   name: package-0, or package-0-die-1
│   │   ├── energy_uj, max_energy_range_uj
│   │   ├── intel-rapl:0:0/             name: core, uncore or dram
│   │   └── intel-rapl:0:1/
│   └── intel-rapl:1/                   name: package-1, or psys
├── intel-rapl-mmio/                    the same package once more, read another way
├── intel-rapl:0 -> .../intel-rapl:0    links to the folders above
└── ...
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
_TREES = ("intel-rapl", "amd-rapl", "intel-rapl-mmio")
_DOMAINS = ("package", "core", "uncore", "dram", "psys")


@dataclass(frozen=True)
class Counter:
    """One counter of the tree.

    Attributes:
        file: What it is read from, in microjoules.
        name: What Linux calls it, such as package-0-die-1.
        range_uj: Where it starts again at 0; None where Linux does not tell.
    """

    file: Path
    name: str
    range_uj: int | None

    @property
    def domain(self) -> str:
        """The domain: the name without socket and die."""
        return self.name.partition("-")[0]

    @property
    def counts(self) -> bool:
        """Whether it is part of what counts; other domains are within packages, or hold them."""
        return self.domain in {"package", "dram"}


def find_counters(powercap: Path = POWERCAP) -> tuple[Counter, ...]:
    """Find the counters of all sockets, each once.

    Args:
        powercap: The folder of all control types.

    Returns:
        The counters of the first tree that has packages; none if no tree has.
    """
    trees = (_counters(powercap / name) for name in _TREES)
    return next((found for found in trees if any(counter.domain == "package" for counter in found)), ())


def why_unreadable(counters: Sequence[Counter]) -> str | None:
    """Say in one line why counters cannot be read, and what to do; None if they can."""
    try:
        for counter in counters:
            float(counter.file.read_text(encoding="ascii"))
    except ValueError:
        return f"a RAPL counter cannot be read: {counter.file} holds no number"
    except OSError as error:
        return explain(error, counters)
    return None


def explain(error: OSError | ValueError, counters: Sequence[Counter]) -> str:
    """Say in one line what an error on reading means, and what to do.

    Args:
        error: The error, which names the file.
        counters: All counters that are read: what denies one denies all.
    """
    if isinstance(error, PermissionError):
        chmod = shlex.join(["sudo", "chmod", "a+r", *(str(counter.file) for counter in counters)])
        return f"permission denied: {error.filename} belongs to root; run: {chmod}; {_after_a_reboot(counters)}"
    if isinstance(error, FileNotFoundError):
        return (
            f"a RAPL counter disappeared: {error.filename}; load its driver (sudo modprobe intel_rapl_msr), run again"
        )
    return f"a RAPL counter cannot be read: {error}"


def _after_a_reboot(counters: Sequence[Counter]) -> str:
    zones = counters[0].file.parent.name.partition(":")[0] + ":*"
    rule = f'ACTION=="add", SUBSYSTEM=="powercap", KERNEL=="{zones}", RUN+="/bin/chmod a+r /sys%p/energy_uj"'
    return f"to keep that after a reboot: echo '{rule}' | sudo tee /etc/udev/rules.d/70-powercap.rules"


def _counters(tree: Path) -> tuple[Counter, ...]:
    zones = f"{tree.name}:*"
    found = [_counter(zone) for zone in sorted([*tree.glob(zones), *tree.glob(f"{zones}/{zones}")])]
    return tuple(counter for counter in found if counter is not None and counter.domain in _DOMAINS)


def _counter(zone: Path) -> Counter | None:
    try:
        name = (zone / "name").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    try:
        range_uj = int((zone / "max_energy_range_uj").read_text(encoding="ascii"))
    except (OSError, ValueError):
        range_uj = None
    return Counter(zone / "energy_uj", name, range_uj)
