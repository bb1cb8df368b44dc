"""What a report says of each subject, in a line of plain words."""

from collections.abc import Mapping

from edgeembed_bench.formats import digits, fixed, megabytes
from edgeembed_bench.report import BenchReport, SubjectResult
from edgeembed_bench.verdicts import Verdict


def findings(report: BenchReport, beside: Mapping[str, Verdict]) -> dict[str, str]:
    """Say what was found, such as "12x faster than teacher, 8 % of its size, 96 % of its quality".

    Args:
        report: What a run found.
        beside: Its subjects beside the baseline.

    Returns:
        A line by the subject's name; that of the baseline says what it costs itself.
    """
    baseline = report[report.baseline]
    return {
        subject.name: _costs(report, subject)
        if subject is baseline
        else ", ".join(
            part
            for part in (
                _speed(beside[subject.name], baseline.name),
                _size(subject, baseline),
                _quality(report, subject),
            )
            if part
        )
        for subject in report
    }


def _costs(report: BenchReport, subject: SubjectResult) -> str:
    size_bytes, quality = subject.size.size_bytes, report.mean_quality(subject.name)
    parts = [
        f"what the others are compared with: {digits(subject.latency.median)} ms a text",
        f"{megabytes(size_bytes)} MB" if size_bytes else "",
        f"quality {fixed(quality, 1)}" if quality is not None else "",
    ]
    return ", ".join(part for part in parts if part)


def _speed(found: Verdict, baseline: str) -> str:
    if found.differs is False:
        return f"no faster and no slower than {baseline}, as far as this run can tell"
    faster = found.ratio.value < 1
    times = 1 / found.ratio.value if faster else found.ratio.value
    about = "" if found.differs else "about "
    return f"{about}{_factor(times)}x {'faster' if faster else 'slower'} than {baseline}"


def _size(subject: SubjectResult, baseline: SubjectResult) -> str:
    own, other = subject.size.size_bytes, baseline.size.size_bytes
    if not own or not other:
        return ""
    return f"{_share(own / other)} of its size" if own <= other else f"{_factor(own / other)}x its size"


def _quality(report: BenchReport, subject: SubjectResult) -> str:
    percent = report.quality_percent(subject.name)
    return "" if percent is None else f"{_share(percent / 100)} of its quality"


def _factor(times: float) -> str:
    """Write a factor: the more it is, the fewer digits it takes to see how much that is."""
    if times < 1.1:
        return f"{times:.2f}"
    return f"{times:.1f}" if times < 10 else f"{times:.0f}"


def _share(part: float) -> str:
    """Write a share in percent, with a digit after the point where it would else be nothing."""
    return f"{part:.1%}".replace("%", " %") if part < 0.01 else f"{part:.0%}".replace("%", " %")
