"""Checks of a report that was read from a file: whatever passes them can be compared and rendered."""

import math
from collections.abc import Iterable
from dataclasses import astuple
from datetime import datetime

import numpy as np

from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.results import ProcessRun, SubjectResult
from edgeembed_bench.subjects import check_names
from edgeembed_bench.worker_client import Start

_MAX_BYTES = 2**63


def check_report(report: BenchmarkReport) -> None:
    """Raise an error that says what is wrong with a report, unless all its statistics and texts can be computed.

    Args:
        report: The report.

    Raises:
        InputError: If a name or a setting is invalid.
        ValueError: If samples are missing, impossible, or differ in number where they belong together.
        ArithmeticError: If a statistic overflows.
    """
    from edgeembed_bench.render.summary import build_content  # matplotlib is not needed here

    _check_names(report)
    datetime.fromisoformat(report.created_utc)
    report.settings.check([""])
    for subject in report:
        _check_subject(subject, len(report.settings.lengths))
    _check_numbers(report)
    if report.floor is not None:
        for start in (report.floor.discarded_start, *report.floor.starts):
            _check_start(report.floor.subject.name, start)
    with np.errstate(all="raise"):
        report.to_json()
        build_content(report)


def _check_names(report: BenchmarkReport) -> None:
    names = [subject.name for subject in report]
    check_names([*names, *([report.floor.subject.name] if report.floor else [])], None)
    for name in (report.baseline, *report.budgeted):
        if name not in names:
            raise ValueError(f"{name} is not among its subjects")


def _check_numbers(report: BenchmarkReport) -> None:
    """Raise ValueError if results that are compared with each other differ in number."""
    processes = {len(subject.processes) for subject in report}
    processes |= {len(report.floor.starts)} if report.floor else set()
    if len(processes) != 1:
        raise ValueError("its subjects differ in the number of processes")
    if len({len(subject.processes[0].latency_ms) for subject in report}) != 1:
        raise ValueError("its subjects differ in the number of latencies")


def _check_subject(subject: SubjectResult, lengths: int) -> None:
    counts = {len(run.latency_ms) for run in subject.processes}
    if len(counts) != 1 or 0 in counts or not _are_positive(subject.latency_ms):
        raise ValueError(f"the latencies of {subject.name} are not positive, or their number differs between processes")
    if not all(
        0 <= file.size_bytes < _MAX_BYTES and 0 <= file.download_bytes < _MAX_BYTES for file in subject.size.files
    ):
        raise ValueError(f"the sizes of the files of {subject.name} are impossible")
    if not all(-100 <= score <= 100 for score in subject.quality.values()):
        raise ValueError(f"the scores of {subject.name} are not between -100 and 100")
    _check_start(subject.name, subject.discarded_start)
    for run in subject.processes:
        _check_start(subject.name, run.start)
        _check_run(subject.name, run, lengths)


def _check_run(name: str, run: ProcessRun, lengths: int) -> None:
    if len(run.sweep_ms) != lengths or not all(times and _are_positive(times) for times in run.sweep_ms):
        raise ValueError(f"the latencies by length of {name} are not positive, or not of the {lengths} lengths")
    if not _are_positive(run.batches_ms):
        raise ValueError(f"the times of batches of {name} are not positive")
    encode, bare = (run.parts_ms.get(part, ()) for part in ("encode", "bare"))
    if encode and bare and len(encode) != len(bare):
        raise ValueError(f"the parts of {name} differ in number")
    if not all(memory is None or 0 < memory < _MAX_BYTES for memory in (run.resident_bytes, run.peak_bytes)):
        raise ValueError(f"the memory of {name} is impossible")


def _check_start(name: str, start: Start) -> None:
    *stages_ms, resident_bytes, peak_bytes = astuple(start)
    if not (all(0 <= stage < math.inf for stage in stages_ms) and start.total_ms > 0):
        raise ValueError(f"the cold starts of {name} are not positive")
    if not all(memory is None or 0 < memory < _MAX_BYTES for memory in (resident_bytes, peak_bytes)):
        raise ValueError(f"the memory of {name} is impossible")


def _are_positive(times: Iterable[float]) -> bool:
    return all(0 < time < math.inf for time in times)
