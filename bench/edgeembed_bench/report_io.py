"""Reports as versioned JSON: every raw sample and, for other programs, the statistics derived from them."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cattrs
from edgeembed_runtime.errors import InputError, one_line, short_repr

from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.report_checks import check_report
from edgeembed_bench.results import PARTS, START_STAGES, SubjectResult
from edgeembed_bench.stats import Interval, Quartiles

# 1: one process for all subjects. 2: fresh processes for each subject; size by file; energy by window.
# 3: texts apart from settings; cores, floor, limits; fields renamed.
SCHEMA_VERSION = 3
_KIND = "edgeembed bench"
_EXPECTED = "expected a file that edgeembed bench --out wrote"


def report_dict(report: BenchmarkReport) -> dict[str, Any]:
    """Return a report as built-in types: the measurements, and statistics by subject under "derived"."""
    derived = {subject.name: _derived(report, subject) for subject in report}
    limits = [
        asdict(check)
        | {
            "result": check.result,
            "is_kept": check.is_kept,
            "is_certain": check.is_certain,
            "is_exceeded": check.is_exceeded,
        }
        for check in report.limit_checks()
    ]
    content = cattrs.unstructure(report)
    return {"schema_version": SCHEMA_VERSION, "kind": _KIND, **content, "derived": derived, "limits": limits}


def read_report(file: str | Path) -> BenchmarkReport:
    """Read a report from a file.

    Args:
        file: A file that `BenchmarkReport.to_json` or `edgeembed bench --out` wrote.

    Returns:
        The report; derived statistics are computed again from the samples.

    Raises:
        InputError: If the file cannot be read, has another schema version, or is not a report that can be shown.
    """
    file = Path(file)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}; {_EXPECTED}") from error
    content = content if isinstance(content, dict) else {}
    version, kind = content.get("schema_version"), content.get("kind")
    if kind is not None and kind != _KIND:
        raise InputError(f"{file} holds a report of another kind, {one_line(str(kind))}; {_EXPECTED}")
    if version != SCHEMA_VERSION:
        raise InputError(
            f"{file} has schema version {short_repr(version)}; expected {SCHEMA_VERSION}: run the benchmark again"
        )
    try:
        report = cattrs.structure(content, BenchmarkReport)
        check_report(report)
    except cattrs.BaseValidationError as error:
        problem = next(iter(cattrs.transform_error(error)), str(error))
        raise InputError(f"{file} is damaged: {one_line(problem)}; {_EXPECTED}") from error
    except (InputError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{file} is damaged: {one_line(str(error))}; {_EXPECTED}") from error
    return report


def _derived(report: BenchmarkReport, subject: SubjectResult) -> dict[str, Any]:
    test = report.compare_latency(subject.name)
    return {
        "median_ms": subject.latency.median,
        "q1_ms": subject.latency.q1,
        "q3_ms": subject.latency.q3,
        "p99_ms": subject.p99_ms,
        "parts_ms": {part: subject.part_ms(part) for part in PARTS},
        "call_overhead_us": _dict_or_none(subject.call_overhead_us),
        "latency_ratio": asdict(test.ratio),
        "is_significant": test.is_significant,
        "p_value": test.p_value,
        "min_detectable_effect": test.min_detectable_effect,
        "sweep_ms": {length: asdict(subject.sweep_at(place)) for place, length in enumerate(report.settings.lengths)},
        "sentences_per_s": report.sentences_per_s(subject.name),
        "cpu_ms": subject.cpu_ms,
        "start_ms": asdict(subject.start_ms),
        "start_stages_ms": {stage: subject.start_stage_ms(stage) for stage in START_STAGES},
        "start_ratio": _dict_or_none(report.start_ratio(subject.name)),
        "start_resident_bytes": subject.start_resident_bytes,
        "start_peak_bytes": subject.start_peak_bytes,
        "memory_ratio": _dict_or_none(report.memory_ratio(subject.name)),
        "resident_bytes": subject.resident_bytes,
        "peak_bytes": subject.peak_bytes,
        "size_bytes": subject.size.size_bytes,
        "download_bytes": subject.size.download_bytes,
        "mj_per_inference": _dict_or_none(subject.energy.mj_per_inference),
        "mj_above_idle": _dict_or_none(subject.energy.mj_above_idle),
        "energy_source": subject.energy.source,
        "energy_reason": subject.energy.reason,
        "energy_discarded": subject.energy.discarded,
        "timer_share": subject.timer_share,
        "mean_quality": report.mean_quality(subject.name),
        "quality_percent": report.quality_percent(subject.name),
    }


def _dict_or_none(figure: Quartiles | Interval | None) -> dict[str, Any] | None:
    return None if figure is None else asdict(figure)
