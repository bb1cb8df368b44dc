"""Comparison of two reports of the same machine, settings and texts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from edgeembed_runtime.errors import InputError, one_line

from edgeembed_bench.renderable import Renderable
from edgeembed_bench.report import BenchmarkReport
from edgeembed_bench.results import SubjectResult

_MACHINE = ("cpu", "flags", "governor", "cores", "available_cores", "ram_bytes", "system", "python")
_SETTINGS = ("threads", "batch_size", "lengths")
_TEXTS = ("sha256",)
_MAX_VALUE_LENGTH = 40


@dataclass(frozen=True)
class Change:
    """A subject that is in both reports.

    Attributes:
        name: The subject's name.
        before: Its result in the first report.
        after: Its result in the second report.
        latency_ratio: Latency after divided by before on the same texts, by the statistic of ratios within a report.
            The runs were not interleaved, so this includes any drift of the machine.
        relative_ratio: The same ratio for the latency relative to the baseline, in which that drift cancels; None if
            the reports have different baselines.
    """

    name: str
    before: SubjectResult
    after: SubjectResult
    latency_ratio: float
    relative_ratio: float | None

    @property
    def differs_in(self) -> list[str]:
        """Changes of the subject itself, in its files or the versions of its packages, one line each."""
        files = [] if _hashes(self.before) == _hashes(self.after) else ["files"]
        old, new = self.before.info.versions, self.after.info.versions
        return files + [
            f"{name} {old.get(name, 'absent')} -> {new.get(name, 'absent')}"
            for name in sorted(old.keys() | new.keys())
            if old.get(name) != new.get(name)
        ]


@dataclass(frozen=True, repr=False)
class Comparison(Renderable):
    """Comparison of two reports.

    `to_json`, `to_markdown` and `to_html` return it as text and write files; a notebook shows its table.

    Attributes:
        unlike: Differences of machine, settings and texts, one line each.
        changes: The subjects that are in both reports.
        only_before: Names of the subjects that are only in the first report.
        only_after: Names of the subjects that are only in the second report.
    """

    unlike: tuple[str, ...]
    changes: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    def __repr__(self) -> str:
        """Return one line for the comparison and one per subject: latency before and after, and their ratio."""
        lines = [f"Comparison: subjects {len(self.changes)}"]
        for change in self.changes:
            before, after = change.before.latency.median, change.after.latency.median
            ratio = f"{change.latency_ratio:.3g}"
            lines.append(f"  {change.name}: {before:.3g} -> {after:.3g} ms per text (ratio {ratio})")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as built-in types: the differences, and the values of each subject in both reports."""
        return {
            "unlike": list(self.unlike),
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
            "changes": [
                {
                    "name": change.name,
                    "latency_ratio": change.latency_ratio,
                    "relative_ratio": change.relative_ratio,
                    "differs_in": change.differs_in,
                    "before": _figures(change.before),
                    "after": _figures(change.after),
                }
                for change in self.changes
            ],
        }

    def _markdown(self) -> str:
        from edgeembed_bench.render.markdown import markdown_comparison  # imports this module

        return markdown_comparison(self)

    def _html(self, *, is_page: bool) -> str:
        from edgeembed_bench.render.html import html_comparison  # imports this module

        return html_comparison(self, is_page=is_page)


def compare_reports(before: BenchmarkReport, after: BenchmarkReport, *, allow_unlike: bool = False) -> Comparison:
    """Compare two reports.

    Args:
        before: The first report.
        after: The second report.
        allow_unlike: Whether to compare reports of different machines, settings or texts.

    Returns:
        The comparison.

    Raises:
        InputError: If no subject is in both reports; or if machine, settings or texts differ, unless `allow_unlike`.
    """
    unlike = tuple(_differences(before, after))
    if unlike and not allow_unlike:
        raise InputError(f"the reports are not comparable: {'; '.join(unlike)}; measure again, or pass --unlike")
    names, others = ([subject.name for subject in report] for report in (before, after))
    both = [name for name in names if name in others]
    if not both:
        raise InputError(f"the reports share no subject: {', '.join(names)} and {', '.join(others)}")
    return Comparison(
        unlike,
        tuple(_change(name, before, after) for name in both),
        tuple(name for name in names if name not in both),
        tuple(name for name in others if name not in both),
    )


def _change(name: str, before: BenchmarkReport, after: BenchmarkReport) -> Change:
    old, new = before[name], after[name]
    relative = None
    if before.baseline == after.baseline:
        relative = after.latency_ratio(name).value / before.latency_ratio(name).value
    return Change(name, old, new, _latency_ratio(old, new), relative)


def _latency_ratio(before: SubjectResult, after: SubjectResult) -> float:
    # In all runs over the same texts, the n-th single text is the same one, whatever the number of processes.
    count = min(len(before.latency_ms), len(after.latency_ms))
    logarithms = np.log(after.latency_ms[:count]) - np.log(before.latency_ms[:count])
    shares = np.array_split(logarithms, min(len(before.processes), len(after.processes)))
    return float(np.exp(np.mean([np.median(share) for share in shares])))


def _differences(before: BenchmarkReport, after: BenchmarkReport) -> Iterator[str]:
    for first, second, names in (
        (before.machine, after.machine, _MACHINE),
        (before.settings, after.settings, _SETTINGS),
        (before.texts, after.texts, _TEXTS),
    ):
        for name in names:
            old, new = getattr(first, name), getattr(second, name)
            if old != new:
                yield _difference(name, old, new)


def _difference(name: str, old: object, new: object) -> str:
    if name == "flags" and isinstance(old, tuple) and isinstance(new, tuple):
        removed, added = sorted({*old} - {*new}), sorted({*new} - {*old})
        shown = _shortened(" ".join(removed))
        return f"flags: {len(removed)} only in the first ({shown}), {len(added)} only in the second"
    return f"{name}: {_shortened(str(old))} and {_shortened(str(new))}"


def _shortened(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _MAX_VALUE_LENGTH else text[: _MAX_VALUE_LENGTH - 1] + "…"


def _hashes(result: SubjectResult) -> dict[str, str]:
    return {file.name: file.sha256 for file in result.size.files}


def _figures(result: SubjectResult) -> dict[str, Any]:
    energy = result.energy.mj_per_inference
    return {
        "median_ms": result.latency.median,
        "q1_ms": result.latency.q1,
        "q3_ms": result.latency.q3,
        "start_ms": result.start_ms.median,
        "size_bytes": result.size.size_bytes,
        "resident_bytes": result.resident_bytes,
        "mj_per_inference": None if energy is None else energy.median,
        "quality": result.quality,
    }
