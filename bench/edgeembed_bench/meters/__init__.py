"""Energy meters: what the machine's counters say, or why they say nothing."""

from edgeembed_bench.meters.battery import BatteryMeter
from edgeembed_bench.meters.finding import find_meter
from edgeembed_bench.meters.rapl import RaplMeter
from edgeembed_bench.meters.readings import EnergyMeter, NullMeter, Reading

__all__ = ["BatteryMeter", "EnergyMeter", "NullMeter", "RaplMeter", "Reading", "find_meter"]
