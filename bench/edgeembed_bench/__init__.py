"""Measure what a sentence encoder costs."""

from edgeembed_bench.benchmark import bench
from edgeembed_bench.budget import Budget
from edgeembed_bench.compare import Comparison, compare_reports, comparison_dict
from edgeembed_bench.energy import Energy, EnergyWindow, IdlePower
from edgeembed_bench.machine import Load, Machine, this_machine
from edgeembed_bench.meters import BatteryMeter, EnergyMeter, NullMeter, RaplMeter, Reading, detect_meter
from edgeembed_bench.model_info import ModelInfo
from edgeembed_bench.plan import Plan
from edgeembed_bench.report import BenchReport, ProcessRun, Settings, SubjectResult
from edgeembed_bench.report_file import read_report, report_dict, report_json
from edgeembed_bench.sizes import Size, SizedFile
from edgeembed_bench.specs import KINDS, parse_subjects
from edgeembed_bench.stats import Estimate, Spread
from edgeembed_bench.subjects import Subject
from edgeembed_bench.verdicts import Verdict
from edgeembed_bench.worker_client import Start, Worker, pinned_to_cores, started
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
    "IdlePower",
    "Load",
    "Machine",
    "ModelInfo",
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
    "detect_meter",
    "parse_subjects",
    "pinned_to_cores",
    "read_report",
    "report_dict",
    "report_json",
    "started",
    "this_machine",
]
