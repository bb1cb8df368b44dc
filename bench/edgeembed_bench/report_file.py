"""A bench report as a file: versioned JSON with every raw sample, and the figures derived from them beside it."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cattrs
from edgeembed_runtime.errors import InputError

from edgeembed_bench.report import BenchReport, SubjectResult
from edgeembed_bench.stats import Spread

# 1: one process for all subjects. 2: fresh processes for each, their samples apart; size by file; energy by window.
SCHEMA_VERSION = 2
_KIND = "edgeembed bench"
_EXPECTED = "expected a file that edgeembed bench --out wrote"


def report_dict(report: BenchReport) -> dict[str, Any]:
    """Give a report ready for JSON: what was measured, and under "derived" the figures of each subject by its name."""
    derived = {subject.name: _derived(report, subject) for subject in report}
    return {"schema_version": SCHEMA_VERSION, "kind": _KIND, **cattrs.unstructure(report), "derived": derived}


def report_json(report: BenchReport) -> str:
    """Give a report as JSON text."""
    return json.dumps(report_dict(report), ensure_ascii=False, allow_nan=False)


def read_report(file: Path) -> BenchReport:
    """Read a report again.

    Args:
        file: What `report_json` gave.

    Returns:
        The report, as it was written; derived figures are derived anew.

    Raises:
        InputError: If the file cannot be read, is of another version, or holds no report.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}; {_EXPECTED}") from error
    content = content if isinstance(content, dict) else {}
    version, kind = content.get("schema_version"), content.get("kind")
    if kind is not None and kind != _KIND:
        raise InputError(f"{file} is of another kind: {kind}; {_EXPECTED}")
    if version != SCHEMA_VERSION:
        raise InputError(f"{file} has schema version {version}; expected {SCHEMA_VERSION}: measure again, {_EXPECTED}")
    try:
        return _checked(cattrs.structure(content, BenchReport))
    except (cattrs.BaseValidationError, KeyError, TypeError, ValueError) as error:
        problem = next(iter(cattrs.transform_error(error)), str(error)) if _is_nested(error) else str(error)
        raise InputError(f"{file} is damaged: {problem}; {_EXPECTED}") from error


def _checked(report: BenchReport) -> BenchReport:
    if report.baseline not in [subject.name for subject in report]:
        raise ValueError(f"its baseline {report.baseline} is not among its subjects")
    for subject in report:
        counts = {len(run.latency_ms) for run in subject.processes}
        if len(counts) != 1 or 0 in counts or not all(0 < time < math.inf for time in subject.latency_ms):
            raise ValueError(f"the latencies of {subject.name} are not as many times above 0 in each process")
    return report


def _derived(report: BenchReport, subject: SubjectResult) -> dict[str, Any]:
    verdict = report.verdict(subject.name)
    stages = ("interpreter", "import", "load", "first_call")
    return {
        "median_ms": subject.latency.median,
        "q1_ms": subject.latency.q1,
        "q3_ms": subject.latency.q3,
        "p99_ms": subject.p99_ms,
        "parts_ms": {part: subject.part_ms(part) for part in ("encode", "tokenize", "run")},
        "latency_ratio": asdict(verdict.ratio),
        "differs": verdict.differs,
        "p_value": verdict.p_value,
        "smallest_difference_seen": verdict.smallest_seen,
        "sweep_ms": {length: asdict(subject.sweep_at(place)) for place, length in enumerate(report.settings.lengths)},
        "sentences_per_s": report.sentences_per_s(subject.name),
        "cpu_ms": subject.cpu_ms,
        "start_ms": asdict(subject.start_ms),
        "start_stages_ms": {stage: subject.start_stage_ms(stage) for stage in stages},
        "resident_bytes": subject.resident_bytes,
        "peak_bytes": subject.peak_bytes,
        "size_bytes": subject.size.size_bytes,
        "download_bytes": subject.size.download_bytes,
        "mj_per_inference": _spread_or_none(subject.energy.mj_per_inference),
        "mj_above_idle": _spread_or_none(subject.energy.mj_above_idle),
        "energy_source": subject.energy.source,
        "energy_reason": subject.energy.reason,
        "energy_discarded": subject.energy.discarded,
        "overhead_share": subject.overhead_share,
        "mean_quality": report.mean_quality(subject.name),
        "quality_percent": report.quality_percent(subject.name),
    }


def _is_nested(error: BaseException) -> bool:
    return isinstance(error, cattrs.BaseValidationError)


def _spread_or_none(found: Spread | None) -> dict[str, float] | None:
    return None if found is None else asdict(found)
