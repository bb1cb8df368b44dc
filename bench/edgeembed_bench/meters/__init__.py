"""Energy meters: RAPL counters, batteries, Apple silicon and Jetson behind one protocol."""

from edgeembed_bench.energy import EnergyMeter, NullMeter, Reading
from edgeembed_bench.meters.battery import BatteryMeter
from edgeembed_bench.meters.detect import detect_meter
from edgeembed_bench.meters.rapl import RaplMeter
from edgeembed_bench.meters.zeus import ZeusMeter

__all__ = ["BatteryMeter", "EnergyMeter", "NullMeter", "RaplMeter", "Reading", "ZeusMeter", "detect_meter"]
