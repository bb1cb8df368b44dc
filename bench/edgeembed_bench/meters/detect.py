"""Detection of the energy meter of this machine."""

import platform
import sys
from pathlib import Path

from edgeembed_runtime.errors import MissingExtraError

from edgeembed_bench.energy import EnergyMeter, NullMeter
from edgeembed_bench.meters.battery import POWER_SUPPLY, BatteryMeter, discharge_w, find_batteries
from edgeembed_bench.meters.rapl import POWERCAP, RaplMeter, find_counters, unreadable_reason
from edgeembed_bench.meters.zeus import SocError, ZeusMeter, open_apple_silicon, open_jetson

TEGRA_RELEASE = Path("/etc/nv_tegra_release")
_WINDOWS = (
    "energy is not measured under Windows: processes may not read RAPL's registers there, and edgeembed does not read "
    "the Energy Meter Interface (EMI), which many machines lack; measure under Linux, on the machine itself"
)
_INTEL_MAC = (
    "energy is not measured with an x86-64 Python on macOS: on Apple silicon install an arm64 Python, on an Intel Mac "
    "only root can read the counters (powermetrics); measure under Linux, on the machine itself"
)


def detect_meter(
    *, powercap: Path = POWERCAP, power_supply: Path = POWER_SUPPLY, tegra_release: Path = TEGRA_RELEASE
) -> EnergyMeter:
    """Return the best energy meter of this machine.

    On Linux this is RAPL where the processor has counters, else the power sensors of a Jetson, else a discharging
    battery. On macOS it is the energy counters of Apple silicon. A battery never replaces counters that exist but
    cannot be read: it measures the whole machine instead of the processor.

    Args:
        powercap: Directory of the RAPL counters.
        power_supply: Directory of the batteries.
        tegra_release: Path of a file that only Jetson boards have.

    Returns:
        A meter; a `NullMeter` whose reason says what to do if nothing can be measured.
    """
    try:
        if sys.platform == "linux":
            return _linux_meter(powercap, power_supply, tegra_release)
        if sys.platform == "darwin":
            return ZeusMeter(open_apple_silicon()) if platform.machine() == "arm64" else NullMeter(_INTEL_MAC)
    except (MissingExtraError, SocError) as error:
        return NullMeter(str(error))
    if sys.platform == "win32":
        return NullMeter(_WINDOWS)
    return NullMeter(f"edgeembed has no energy meter for {sys.platform}; measure under Linux, on the machine itself")


def _linux_meter(powercap: Path, power_supply: Path, tegra_release: Path) -> EnergyMeter:
    counters = find_counters(powercap)
    if counters:
        reason = unreadable_reason(counters)
        return RaplMeter(counters) if reason is None else NullMeter(reason)
    if tegra_release.exists():
        return ZeusMeter(open_jetson())
    batteries = find_batteries(power_supply)
    if batteries:
        _, reason = discharge_w(batteries)
        return BatteryMeter(batteries) if reason is None else NullMeter(f"no RAPL counter, and {reason}")
    return NullMeter(_no_meter_reason(powercap, power_supply))


def _no_meter_reason(powercap: Path, power_supply: Path) -> str:
    rapl = "shows no package" if powercap.is_dir() else "is absent"
    battery = "shows none" if power_supply.is_dir() else "is absent"
    return (
        f"no RAPL counter on this machine ({powercap} {rapl}) and no battery ({power_supply} {battery}), "
        "as in virtual machines and containers; measure on the machine itself"
    )
