"""Benchmark sentence encoders: latency, throughput, cold start, memory, size, energy and quality."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeembed_bench.benchmarking import benchmark
    from edgeembed_bench.budget import Budget, LimitCheck
    from edgeembed_bench.compare import Comparison, compare_reports
    from edgeembed_bench.energy import Energy, EnergyWindow, IdlePower
    from edgeembed_bench.machine import Load, Machine, this_machine
    from edgeembed_bench.meters import BatteryMeter, EnergyMeter, NullMeter, RaplMeter, Reading, ZeusMeter, detect_meter
    from edgeembed_bench.model_info import ModelInfo
    from edgeembed_bench.presets import Preset, find_preset
    from edgeembed_bench.report import BenchmarkReport
    from edgeembed_bench.report_io import read_report
    from edgeembed_bench.results import FloorResult, ProcessRun, SubjectResult
    from edgeembed_bench.runner import pin_to_cores
    from edgeembed_bench.sizes import Size, SizedFile
    from edgeembed_bench.stats import Interval, Quartiles, SignificanceTest
    from edgeembed_bench.subjects import Subject, parse_subjects
    from edgeembed_bench.worker_client import Start, Worker, WorkerEncoder, start_worker
    from edgeembed_bench.workload import BenchmarkSettings, TextInfo

# Imported on first use: the worker process imports this package in Pythons that lack its dependencies.
_MODULES = {
    "benchmark": "benchmarking",
    "Budget": "budget",
    "LimitCheck": "budget",
    "Comparison": "compare",
    "compare_reports": "compare",
    "Energy": "energy",
    "EnergyWindow": "energy",
    "IdlePower": "energy",
    "Load": "machine",
    "Machine": "machine",
    "this_machine": "machine",
    "BatteryMeter": "meters",
    "EnergyMeter": "meters",
    "NullMeter": "meters",
    "RaplMeter": "meters",
    "Reading": "meters",
    "ZeusMeter": "meters",
    "detect_meter": "meters",
    "ModelInfo": "model_info",
    "Preset": "presets",
    "find_preset": "presets",
    "BenchmarkReport": "report",
    "TextInfo": "workload",
    "read_report": "report_io",
    "FloorResult": "results",
    "ProcessRun": "results",
    "SubjectResult": "results",
    "pin_to_cores": "runner",
    "BenchmarkSettings": "workload",
    "Size": "sizes",
    "SizedFile": "sizes",
    "Interval": "stats",
    "Quartiles": "stats",
    "SignificanceTest": "stats",
    "Subject": "subjects",
    "parse_subjects": "subjects",
    "Start": "worker_client",
    "Worker": "worker_client",
    "WorkerEncoder": "worker_client",
    "start_worker": "worker_client",
}

__all__ = [
    "BatteryMeter",
    "BenchmarkReport",
    "BenchmarkSettings",
    "Budget",
    "Comparison",
    "Energy",
    "EnergyMeter",
    "EnergyWindow",
    "FloorResult",
    "IdlePower",
    "Interval",
    "LimitCheck",
    "Load",
    "Machine",
    "ModelInfo",
    "NullMeter",
    "Preset",
    "ProcessRun",
    "Quartiles",
    "RaplMeter",
    "Reading",
    "SignificanceTest",
    "Size",
    "SizedFile",
    "Start",
    "Subject",
    "SubjectResult",
    "TextInfo",
    "Worker",
    "WorkerEncoder",
    "ZeusMeter",
    "benchmark",
    "compare_reports",
    "detect_meter",
    "find_preset",
    "parse_subjects",
    "pin_to_cores",
    "read_report",
    "start_worker",
    "this_machine",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
