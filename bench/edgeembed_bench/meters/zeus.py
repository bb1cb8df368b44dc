"""Energy meter for Apple silicon and NVIDIA Jetson, by zeus (https://ml.energy/zeus).

zeus reads Apple's IOReport energy counters, which need no root, and on a Jetson the INA3221 power sensors, which a
process of its own samples ten times a second. `zeus.device.soc` has one interface for both: `begin_window(key)` and
`end_window(key)`, which returns a dataclass of energies in millijoules; a field that the chip lacks is None.
"""

import time
from dataclasses import asdict
from typing import Any, Protocol

from edgeembed_runtime.errors import MissingExtraError

from edgeembed_bench.energy import Reading

_WINDOW = "edgeembed"
_CPU = "cpu"
_BOARD = "board"
# Fields of zeus's measurements: AppleSiliconMeasurement, then JetsonMeasurement.
_DOMAINS = {
    "cpu_total_mj": _CPU,
    "gpu_mj": "gpu",
    "gpu_sram_mj": "gpu_sram",
    "ane_mj": "neural_engine",
    "dram_mj": "dram",
    "cpu_energy_mj": _CPU,
    "gpu_energy_mj": "gpu",
    "total_energy_mj": _BOARD,
}
# As RAPL's total is package + DRAM. GPU SRAM is not summed: zeus does not say whether the GPU's energy includes it.
_SUMMED = (_CPU, "gpu", "neural_engine", "dram")


class SocError(Exception):
    """The energy counters of a system on a chip (SoC) cannot be read; the message says what to do."""


class Soc(Protocol):
    """The part of `zeus.device.soc.common.SoC` that the meter uses."""

    def begin_window(self, key: str, restart: bool = False) -> None:
        """Begin a measurement window."""

    def end_window(self, key: str) -> Any:
        """End a window and return a dataclass of energies in millijoules."""


class ZeusMeter:
    """Energy of a system on a chip: CPU + GPU + neural engine + DRAM, or the whole board where a sensor measures it.

    On Apple silicon, which has no board sensor, the energy is the sum. A Jetson's board sensor (VDD_IN) includes
    everything on the module; on models without it, the energy is CPU + GPU.

    Args:
        soc: An `AppleSilicon` or `Jetson` object of zeus.
    """

    def __init__(self, soc: Soc) -> None:
        self._soc = soc
        self._is_sampled = type(soc).__name__ == "Jetson"
        self._begin_s = 0.0
        self._begin_reason: str | None = "no window was begun"

    @property
    def source(self) -> str:
        """Description of the counters."""
        if self._is_sampled:
            return "Jetson power sensors, by zeus, the whole board where it has such a sensor, else CPU + GPU"
        return "Apple silicon CPU + GPU + neural engine + DRAM, by zeus, where the chip reports them"

    @property
    def min_window_s(self) -> float:
        """Minimum window length in seconds: 1 for Apple's counters, 10 for a Jetson's, which lag by up to 0.1 s."""
        return 10.0 if self._is_sampled else 1.0

    def begin(self) -> None:
        """Open a window. A window that is still open is dropped."""
        try:
            self._soc.begin_window(_WINDOW, restart=True)
        except Exception as error:  # noqa: BLE001  # zeus documents no exceptions; energy must not end a benchmark
            self._begin_reason = _failure(error)
        else:
            self._begin_reason = None
        self._begin_s = time.perf_counter()

    def end(self) -> Reading:
        """Close the window and return its energy."""
        reason, self._begin_reason = self._begin_reason, "no window was begun"
        if reason is not None:
            return Reading(None, 0.0, {}, reason)
        try:
            measured = asdict(self._soc.end_window(_WINDOW))
        except Exception as error:  # noqa: BLE001  # see begin
            return Reading(None, time.perf_counter() - self._begin_s, {}, _failure(error))
        return _reading(measured, time.perf_counter() - self._begin_s)


def open_apple_silicon() -> Soc:
    """Return zeus's reader of Apple silicon's energy counters.

    Raises:
        MissingExtraError: If zeus or zeus-apple-silicon is not installed.
        SocError: If the counters cannot be opened.
    """
    try:
        import zeus_apple_silicon  # noqa: F401  # zeus alone imports without it and measures nothing
        from zeus.device.soc.apple import AppleSilicon
        from zeus.device.soc.common import ZeusSoCInitError
    except ImportError as error:
        raise MissingExtraError("zeus", "zeus") from error
    try:
        soc: Soc = AppleSilicon()
    except ZeusSoCInitError as error:
        raise SocError(f"Apple silicon's energy counters cannot be opened: {error}; update macOS") from error
    return soc


def open_jetson() -> Soc:
    """Return zeus's reader of a Jetson's power sensors; it starts a process that ends with this one.

    Raises:
        MissingExtraError: If zeus is not installed.
        SocError: If the power sensors cannot be opened.
    """
    try:
        from zeus.device.soc.common import ZeusSoCInitError
        from zeus.device.soc.jetson import Jetson
    except ImportError as error:
        raise MissingExtraError("zeus", "zeus") from error
    try:
        soc: Soc = Jetson()
    except ZeusSoCInitError as error:
        raise SocError(f"this Jetson's power sensors cannot be opened: {error}; use the system's Python") from error
    return soc


def _reading(measured_mj: dict[str, Any], window_s: float) -> Reading:
    domains_j = {
        domain: measured_mj[field] / 1e3 for field, domain in _DOMAINS.items() if measured_mj.get(field) is not None
    }
    if any(energy_j < 0 for energy_j in domains_j.values()):
        return Reading(None, window_s, {}, "an energy counter of the chip ran backwards; run again")
    total = _BOARD if _BOARD in domains_j else _CPU
    if total not in domains_j:
        return Reading(None, window_s, {}, "the chip reports no CPU energy; measure on another machine")
    # A GPU or neural engine that is switched off uses no energy, but a running CPU or board always does.
    if domains_j[total] == 0:
        return Reading(None, window_s, {}, f"the chip's energy counter of the {total} stood still; run again")
    if domains_j.get("dram") == 0:
        del domains_j["dram"]
    if total == _BOARD:
        return Reading(domains_j[_BOARD], window_s, domains_j)
    return Reading(sum(domains_j.get(name, 0.0) for name in _SUMMED), window_s, domains_j)


def _failure(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"zeus cannot read the energy counters: {text or type(error).__name__}; run again"
