"""The machine that a measurement was made on."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "edgeembed",
    "edgeembed-runtime",
    "numpy",
    "onnxruntime",
    "tokenizers",
    "torch",
    "transformers",
    "sentence-transformers",
)


@dataclass(frozen=True)
class Machine:
    """What decides how fast an encoder runs here.

    Attributes:
        cpu: The processor's name.
        cores: Logical cores of the machine.
        cores_allowed: Logical cores that this process may use.
        ram_bytes: Main memory; None where the system does not tell.
        system: Operating system and its version.
        python: Version of the interpreter.
        versions: Versions of the packages that do the work; None for one that is absent.
    """

    cpu: str
    cores: int
    cores_allowed: int
    ram_bytes: int | None
    system: str
    python: str
    versions: dict[str, str | None]


def this_machine() -> Machine:
    """Describe the machine and the packages of this process."""
    cores = os.cpu_count() or 1
    return Machine(
        cpu=_cpu_name(),
        cores=cores,
        cores_allowed=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores,
        ram_bytes=_ram_bytes(),
        system=platform.platform(),
        python=platform.python_version(),
        versions={package: _version(package) for package in PACKAGES},
    )


def _cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _ram_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
