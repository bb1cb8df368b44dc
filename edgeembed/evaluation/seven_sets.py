"""The papers' table of seven similarity sets: STS 2012 to 2016, STS-B, SICK-R, and their average."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.sts import SentencePairs, read_sts

SETS = {
    "STS12": "sts12",
    "STS13": "sts13",
    "STS14": "sts14",
    "STS15": "sts15",
    "STS16": "sts16",
    "STS-B": "stsb",
    "SICK-R": "sickr",
}
"""The folder of each set, by what the papers call the set, in their order."""


@dataclass(frozen=True)
class SevenSets:
    """An encoder's row in a table of the papers: their seven similarity sets, or DistilCSE's seven transfer tasks.

    Attributes:
        values: The score x100 by the papers' name of the set; None for a set that is absent.
    """

    values: dict[str, float | None]

    @property
    def present(self) -> tuple[str, ...]:
        """The sets that were scored."""
        return tuple(name for name, value in self.values.items() if value is not None)

    @property
    def average(self) -> float:
        """The mean over the sets that were scored: the papers' average only if these are all seven."""
        values = [value for value in self.values.values() if value is not None]
        return sum(values) / len(values)

    @property
    def average_of(self) -> str:
        """What the average is called: "Avg." with all seven sets, else how many and which it is over."""
        if len(self.present) == len(self.values):
            return "Avg."
        return f"Avg. ({len(self.present)} of {len(self.values)}: {', '.join(self.present)})"

    def as_dict(self) -> dict[str, Any]:
        """Give the row ready for JSON, with null for a set that is absent."""
        return {"values": self.values, "average": self.average, "average_of": self.average_of}


def read_seven_sets(folder: Path) -> list[SentencePairs]:
    """Read those of the seven sets that are there.

    Args:
        folder: Holds `sts12/test.tsv` to `sts16/test.tsv`, `stsb/test.tsv` and `sickr/test.tsv`, or some of them, as
            `read_sts` takes them; what else it holds is not looked at.

    Returns:
        The sets by the papers' names, in their order. All pairs of a set count, whichever of them are in STS-B too.

    Raises:
        InputError: If none is there, or one cannot be used.
    """
    files = {name: folder / place / "test.tsv" for name, place in SETS.items()}
    found = [replace(read_sts(file), name=name, held_out=None) for name, file in files.items() if file.exists()]
    if not found:
        expected = ", ".join(f"{place}/test.tsv" for place in SETS.values())
        raise InputError(f"{folder} holds none of the seven similarity sets; expected one or more of {expected}")
    return found


def seven_sets(scores: Sequence[Score], names: Collection[str] = SETS) -> SevenSets | None:
    """Give an encoder's row in a table of the papers.

    Args:
        scores: All scores of the encoder.
        names: The papers' names of the sets, in their order; the similarity sets if absent.

    Returns:
        The row; None if none of these sets is among what was scored.
    """
    values = {score.task: score.value for score in scores if score.task in names}
    return SevenSets({name: values.get(name) for name in names}) if values else None
