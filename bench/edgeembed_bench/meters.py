"""Energy meters: what the machine's counters say, or why they say nothing. Not measured is None, never 0."""

import importlib
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from edgeembed_runtime.errors import MissingExtraError

RAPL_TREE = Path("/sys/class/powercap/intel-rapl")


@dataclass(frozen=True)
class Reading:
    """What a meter says of one window.

    Attributes:
        energy_j: Joules used in the window; None if they were not measured.
        reason: Why they were not; None if they were.
    """

    energy_j: float | None
    reason: str | None = None


class EnergyMeter(Protocol):
    """Something that measures the energy between two moments."""

    @property
    def source(self) -> str | None:
        """Where the figures come from; None for a meter that measures nothing."""

    def begin(self) -> None:
        """Open a window."""

    def end(self) -> Reading:
        """Close the window and give its reading."""


class NullMeter:
    """The meter of a machine without one: every reading is None with the same reason."""

    source: str | None = None

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def begin(self) -> None:
        """Open a window."""

    def end(self) -> Reading:
        """Give no energy, and the reason."""
        return Reading(None, self.reason)


class RaplMeter:
    """Intel's and AMD's running average power limit counters, read by pyJoules: whole packages plus DRAM.

    Raises:
        MissingExtraError: If pyJoules is not installed.
    """

    source = "RAPL package + DRAM, by pyJoules"

    def __init__(self) -> None:
        energy_meter, rapl_device = _import_pyjoules()
        device = rapl_device.RaplDevice()
        device.configure()
        self._meter: Any = energy_meter.EnergyMeter([device])

    def begin(self) -> None:
        """Open a window."""
        with _ignored_leaks():
            self._meter.start()

    def end(self) -> Reading:
        """Close the window and give the energy of all sockets in it."""
        with _ignored_leaks():
            self._meter.stop()
        return rapl_reading(self._meter.get_trace()[0].energy)


def find_meter(tree: Path = RAPL_TREE) -> EnergyMeter:
    """Find this machine's energy meter.

    Args:
        tree: The counters' folder.

    Returns:
        A `RaplMeter` where its counters can be read, else a `NullMeter` that says what is missing.
    """
    reason = _why_unreadable(tree)
    if reason is not None:
        return NullMeter(reason)
    try:
        return RaplMeter()
    except MissingExtraError as error:
        return NullMeter(str(error))


def rapl_reading(energies_uj: Mapping[str, float]) -> Reading:
    """Turn the differences of RAPL counters into a reading.

    Args:
        energies_uj: Microjoules by domain, as pyJoules names them: package_0, core_0, dram_0. Core and uncore
            are parts of the package and are not added again.

    Returns:
        The sum over packages and DRAM in joules, or None if a counter wrapped, stood still or is absent.
    """
    packages = [value for name, value in energies_uj.items() if name.startswith("package_")]
    drams = [value for name, value in energies_uj.items() if name.startswith("dram_")]
    if not packages:
        return Reading(None, f"RAPL shows no package counter, only: {', '.join(energies_uj) or 'nothing'}")
    if min(packages + drams) < 0:
        return Reading(None, "a RAPL counter wrapped around within the window; run again")
    if min(packages) == 0:
        return Reading(None, "a RAPL counter stood still within the window, as they do in virtual machines")
    return Reading(sum(packages + drams) / 1e6)


def _why_unreadable(tree: Path) -> str | None:
    if not tree.parent.is_dir():
        return f"no RAPL counter on this machine ({tree.parent} is absent)"
    counters = sorted(tree.glob("intel-rapl:*/energy_uj"))
    if not counters:
        return f"no RAPL counter on this machine ({tree} holds none)"
    try:
        for counter in counters:
            int(counter.read_text(encoding="ascii"))
    except PermissionError:
        return f"permission denied: {counter} belongs to root; run: sudo chmod -R a+r {tree}/"
    except (OSError, ValueError) as error:
        return f"{counter} cannot be read: {error}"
    return None


def _import_pyjoules() -> tuple[Any, Any]:
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)  # on import it warns that there is no NVIDIA library
    try:
        meter = importlib.import_module("pyJoules.energy_meter")
        return meter, importlib.import_module("pyJoules.device.rapl_device")
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyJoules", "energy") from error
    finally:
        logging.disable(level)


@contextmanager
def _ignored_leaks() -> Iterator[None]:
    with warnings.catch_warnings():
        # pyJoules 0.5.1 leaves the closing of its files to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        yield
