"""Energy meters: what the machine's counters say, or why they say nothing."""

from edgeembed_bench.meters.base import EnergyMeter, NullMeter, Reading
from edgeembed_bench.meters.battery import BatteryMeter
from edgeembed_bench.meters.detect import detect_meter
from edgeembed_bench.meters.rapl import RaplMeter

__all__ = ["BatteryMeter", "EnergyMeter", "NullMeter", "RaplMeter", "Reading", "detect_meter"]
