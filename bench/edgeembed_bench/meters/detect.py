"""Which meter this machine has."""

import sys
from pathlib import Path

from edgeembed_runtime.errors import MissingExtraError

from edgeembed_bench.meters.base import EnergyMeter, NullMeter
from edgeembed_bench.meters.battery import POWER_SUPPLY, BatteryMeter, discharge_w, find_batteries
from edgeembed_bench.meters.counters import POWERCAP, find_counters, why_unreadable
from edgeembed_bench.meters.rapl import RaplMeter

_ELSEWHERE = {
    "darwin": "macOS shows energy to root alone, through powermetrics, which edgeembed does not read",
    "win32": "Windows shows energy counters to signed drivers alone, which edgeembed does not bring",
}


def detect_meter(*, powercap: Path = POWERCAP, power_supply: Path = POWER_SUPPLY) -> EnergyMeter:
    """Find this machine's energy meter.

    Args:
        powercap: The folder of the processor's counters.
        power_supply: The folder of the batteries.

    Returns:
        A `RaplMeter` where the processor has counters, else a `BatteryMeter` where a battery discharges. A `NullMeter`
        that says what to do where neither can be: counters that are there and cannot be read are not replaced by a
        battery, whose figures mean something else.
    """
    platform = sys.platform
    if platform != "linux":
        missing = _ELSEWHERE.get(platform, f"edgeembed knows no energy counter of {platform}")
        return NullMeter(f"{missing}; measure under Linux, on the machine itself")
    counters = find_counters(powercap)
    if counters:
        reason = why_unreadable(counters)
        try:
            return RaplMeter(counters) if reason is None else NullMeter(reason)
        except MissingExtraError as error:
            return NullMeter(str(error))
    batteries = find_batteries(power_supply)
    if batteries:
        _, reason = discharge_w(batteries)
        return BatteryMeter(batteries) if reason is None else NullMeter(f"no RAPL counter, and {reason}")
    return NullMeter(_nothing(powercap, power_supply))


def _nothing(powercap: Path, power_supply: Path) -> str:
    rapl = "shows no package" if powercap.is_dir() else "is absent"
    battery = "shows none" if power_supply.is_dir() else "is absent"
    return (
        f"no RAPL counter on this machine ({powercap} {rapl}) and no battery ({power_supply} {battery}), "
        "as in virtual machines and containers; measure on the machine itself"
    )
