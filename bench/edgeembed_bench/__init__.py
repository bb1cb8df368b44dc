"""Measure what a sentence encoder costs."""

from edgeembed_bench.interleaving import Samples
from edgeembed_bench.machine import Machine, this_machine
from edgeembed_bench.measurement import bench
from edgeembed_bench.meters import EnergyMeter, NullMeter, RaplMeter, Reading, find_meter
from edgeembed_bench.report import BenchReport, Energy, Settings, SubjectResult
from edgeembed_bench.subjects import Subject, from_bundle, from_function, from_sentence_transformer
from edgeembed_bench.table import report_table

__all__ = [
    "BenchReport",
    "Energy",
    "EnergyMeter",
    "Machine",
    "NullMeter",
    "RaplMeter",
    "Reading",
    "Samples",
    "Settings",
    "Subject",
    "SubjectResult",
    "bench",
    "find_meter",
    "from_bundle",
    "from_function",
    "from_sentence_transformer",
    "report_table",
    "this_machine",
]
