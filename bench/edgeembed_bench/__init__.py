"""Measure what a sentence encoder costs."""

from edgeembed_bench.budget import Budget
from edgeembed_bench.comparison import Comparison, compare_reports, comparison_dict
from edgeembed_bench.energy import Energy, EnergyWindow, IdlePower
from edgeembed_bench.estimates import Estimate, Spread
from edgeembed_bench.facts import Facts
from edgeembed_bench.machine import Load, Machine, this_machine
from edgeembed_bench.measurement import bench
from edgeembed_bench.meters import BatteryMeter, EnergyMeter, NullMeter, RaplMeter, Reading, find_meter
from edgeembed_bench.plan import Plan
from edgeembed_bench.processes import Start, Worker, held_to_cores, started
from edgeembed_bench.report import BenchReport, ProcessRun, Settings, SubjectResult
from edgeembed_bench.report_file import read_report, report_dict, report_json
from edgeembed_bench.sizes import Size, SizedFile
from edgeembed_bench.specs import KINDS, parse_subjects
from edgeembed_bench.subjects import Subject
from edgeembed_bench.verdicts import Verdict
from edgeembed_bench.worker_encoder import WorkerEncoder

__all__ = [
    "KINDS",
    "BatteryMeter",
    "BenchReport",
    "Budget",
    "Comparison",
    "Energy",
    "EnergyMeter",
    "EnergyWindow",
    "Estimate",
    "Facts",
    "IdlePower",
    "Load",
    "Machine",
    "NullMeter",
    "Plan",
    "ProcessRun",
    "RaplMeter",
    "Reading",
    "Settings",
    "Size",
    "SizedFile",
    "Spread",
    "Start",
    "Subject",
    "SubjectResult",
    "Verdict",
    "Worker",
    "WorkerEncoder",
    "bench",
    "compare_reports",
    "comparison_dict",
    "find_meter",
    "held_to_cores",
    "parse_subjects",
    "read_report",
    "report_dict",
    "report_json",
    "started",
    "this_machine",
]
