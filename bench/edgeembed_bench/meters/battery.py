"""Energy meter for a laptop without RAPL: the discharge of its battery while it is unplugged."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgeembed_bench.energy import Reading

POWER_SUPPLY = Path("/sys/class/power_supply")


@dataclass(frozen=True)
class _Sample:
    """Discharge power at one moment; None, with the reason, if it could not be read."""

    time_s: float
    power_w: float | None
    reason: str | None


class BatteryMeter:
    """Discharge of all batteries, sampled in a background thread and integrated over time.

    The energy includes screen, disk and radios; subtract idle power to see what the work adds.

    Args:
        batteries: Directories of the batteries; power is summed over those that discharge.
        interval_s: Seconds between samples; most batteries refresh their values about once a second.
    """

    min_window_s = 30.0  # batteries refresh their values once a second or less often, and round to about 1 %

    def __init__(self, batteries: Sequence[Path], interval_s: float = 0.2) -> None:
        self._batteries = tuple(batteries)
        self._interval_s = interval_s
        self._samples: list[_Sample] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def source(self) -> str:
        """Description of the batteries and of what their discharge includes."""
        names = " + ".join(battery.name for battery in self._batteries)
        return f"discharge of {names}, sampled every {self._interval_s:g} s, the whole machine included"

    def begin(self) -> None:
        """Open a window and start sampling. A window that is still open is dropped."""
        self._join()
        self._samples = [self._sample()]
        self._stop.clear()
        self._thread = threading.Thread(target=self._sample_until_stopped, name="battery meter", daemon=True)
        self._thread.start()

    def end(self) -> Reading:
        """Close the window and return the energy that the batteries delivered."""
        self._join()
        self._samples.append(self._sample())
        return _reading(self._samples)

    def _join(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _sample_until_stopped(self) -> None:
        while not self._stop.wait(self._interval_s):
            self._samples.append(self._sample())

    def _sample(self) -> _Sample:
        power_w, reason = discharge_w(self._batteries)
        return _Sample(time.perf_counter(), power_w, reason)


def find_batteries(power_supply: Path = POWER_SUPPLY) -> tuple[Path, ...]:
    """Return the directories of the batteries that power the machine itself, not a mouse or keyboard.

    Args:
        power_supply: Directory of all power supplies.
    """
    supplies = sorted(power_supply.glob("*"))
    return tuple(
        supply for supply in supplies if _line(supply, "type") == "Battery" and _line(supply, "scope") != "Device"
    )


def discharge_w(batteries: Sequence[Path]) -> tuple[float | None, str | None]:
    """Return the discharge power of the batteries at this moment.

    Args:
        batteries: Directories of the batteries.

    Returns:
        The sum in watts and None; or None and the reason why it is unknown, with what to do.
    """
    status = {battery.name: _line(battery, "status") for battery in batteries}
    names = ", ".join(status)
    if None in status.values():
        return None, f"the battery disappeared: {names}; run again"
    # A laptop with several batteries discharges one at a time.
    discharging = [battery for battery in batteries if status[battery.name] == "Discharging"]
    if not discharging or "Charging" in status.values():
        shown = ", ".join(f"{name}: {state}" for name, state in status.items())
        return None, f"on mains: unplug, so that the battery discharges ({shown})"
    try:
        power_w = sum(_power_w(battery) for battery in discharging)
    except (OSError, ValueError) as error:
        return None, f"the battery reports no power: {error}; use a machine with RAPL"
    return (power_w, None) if power_w > 0 else (None, f"the discharging battery reports a power of 0: {names}")


def _reading(samples: Sequence[_Sample]) -> Reading:
    window_s = samples[-1].time_s - samples[0].time_s
    powers_w = [sample.power_w for sample in samples if sample.power_w is not None]
    reasons = [sample.reason or "the battery reported no power" for sample in samples if sample.power_w is None]
    if reasons:
        return Reading(None, window_s, {}, reasons[0])
    power_w = np.asarray(powers_w)
    steps_s = np.diff([sample.time_s for sample in samples])
    energy_j = float(steps_s @ (power_w[1:] + power_w[:-1]) / 2)  # trapezoidal rule; NumPy 1 and 2 name it differently
    return Reading(energy_j, window_s, {"battery": energy_j})


def _power_w(battery: Path) -> float:
    # Some drivers report discharge as a negative number.
    if (battery / "power_now").exists():
        return abs(_number(battery, "power_now")) / 1e6
    return abs(_number(battery, "current_now")) / 1e6 * _number(battery, "voltage_now") / 1e6


def _number(supply: Path, name: str) -> int:
    return int((supply / name).read_text(encoding="ascii"))


def _line(supply: Path, name: str) -> str | None:
    try:
        return (supply / name).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
