"""Two reports side by side, and whether they may be: times of unlike machines say nothing of the subjects."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from edgeembed_runtime.errors import InputError

from edgeembed_bench.report import BenchReport, SubjectResult

_MACHINE = ("cpu", "flags", "governor", "cores", "cores_allowed", "ram_bytes", "system", "python")
_SETTINGS = ("threads", "texts_sha256", "batch_size", "lengths")
_LONG = 40


@dataclass(frozen=True)
class Change:
    """One subject in both reports.

    Attributes:
        name: The subject's name.
        before: What the first report found.
        after: What the second found.
        latency_ratio: The second's median latency as a multiple of the first's. The two were not measured side by side,
            so that a drift of the machine is in it.
        relative_ratio: The same of the multiples of the report's own baseline, in which such a drift cancels; None
            where the reports have other baselines.
    """

    name: str
    before: SubjectResult
    after: SubjectResult
    latency_ratio: float
    relative_ratio: float | None

    @property
    def differs_in(self) -> list[str]:
        """What is not the same of the subject itself: its files, or versions of its packages."""
        found = [] if _hashes(self.before) == _hashes(self.after) else ["files"]
        old, new = self.before.facts.versions, self.after.facts.versions
        return found + [
            f"{name} {old.get(name, 'absent')} -> {new.get(name, 'absent')}"
            for name in sorted(old.keys() | new.keys())
            if old.get(name) != new.get(name)
        ]


@dataclass(frozen=True)
class Comparison:
    """Two reports.

    Attributes:
        unlike: How machine and settings differ, one line each; empty if they do not.
        changes: The subjects that both have, by name.
        only_before: Names of those in the first alone.
        only_after: Names of those in the second alone.
    """

    unlike: tuple[str, ...]
    changes: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]


def compare_reports(before: BenchReport, after: BenchReport, *, allow_unlike: bool = False) -> Comparison:
    """Put two reports side by side.

    Args:
        before: The first.
        after: The second.
        allow_unlike: Whether to compare what was measured on unlike machines, or with unlike settings.

    Raises:
        InputError: If machine or settings differ, unless that is allowed; or if no subject is in both.
    """
    unlike = tuple(_differences(before, after))
    if unlike and not allow_unlike:
        raise InputError(f"the reports are not alike: {'; '.join(unlike)}; measure both alike, or allow it: --unlike")
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


def _change(name: str, before: BenchReport, after: BenchReport) -> Change:
    old, new = before[name], after[name]
    relative = None
    if before.baseline == after.baseline:
        relative = after.latency_ratio(name).value / before.latency_ratio(name).value
    return Change(name, old, new, new.latency.median / old.latency.median, relative)


def _differences(before: BenchReport, after: BenchReport) -> Iterator[str]:
    for first, second, names in (
        (before.machine, after.machine, _MACHINE),
        (before.settings, after.settings, _SETTINGS),
    ):
        for name in names:
            old, new = getattr(first, name), getattr(second, name)
            if old != new:
                yield _difference(name, old, new)


def _difference(name: str, old: object, new: object) -> str:
    if name == "flags" and isinstance(old, tuple) and isinstance(new, tuple):
        lost, won = sorted({*old} - {*new}), sorted({*new} - {*old})
        return f"flags: {len(lost)} only in the first ({_cut(' '.join(lost))}), {len(won)} only in the second"
    return f"{name}: {_cut(str(old))} and {_cut(str(new))}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"


def _hashes(result: SubjectResult) -> dict[str, str]:
    return {file.name: file.sha256 for file in result.size.files}


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """Give the figures of a comparison, ready for JSON."""
    return {
        "unlike": list(comparison.unlike),
        "only_before": list(comparison.only_before),
        "only_after": list(comparison.only_after),
        "changes": [
            {
                "name": change.name,
                "latency_ratio": change.latency_ratio,
                "relative_ratio": change.relative_ratio,
                "differs_in": change.differs_in,
                "before": _figures(change.before),
                "after": _figures(change.after),
            }
            for change in comparison.changes
        ],
    }


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
