"""Plot alignment against uniformity for docs/results/distilcse.md.

python -m experiments.distilcse.plots docs/results/distilcse-geometry.json docs/results/distilcse-geometry.svg
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.seed_table import group_seeds

# Name of the students' folders without the seed, and label.
POINTS = (
    ("distilcse", "CKD"),
    ("distilcse-bank-4096", "CKD, bank 4,096"),
    ("distilcse-bank-0", "CKD, no bank"),
    ("distilcse-kd", "KD"),
    ("distilcse-prototype-kd", "KD, prototype scores"),
    ("distilcse-pkd", "PKD"),
    ("distilcse-one-stage", "one stage"),
    ("stage-2-alone", "stage 2 alone"),
)


def score(found: Mapping[str, Any], name: str) -> float:
    """Return a student's score of the task whose name ends with `name`."""
    (value,) = (each["value"] for each in found["scores"] if each["task"].endswith(name))
    return float(value)


def geometry(axes: Axes, students: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Draw alignment against uniformity, both the lower the better: a point for each seed, a color for each method."""
    for name, label in POINTS:
        if name in students:
            points = [(score(seed, "uniformity"), score(seed, "alignment")) for seed in students[name]]
            axes.plot(*zip(*points, strict=True), "o", label=label)
    axes.legend(fontsize=8)
    axes.set(xlabel="uniformity (lower is better)", ylabel="alignment (lower is better)")


@click.command(help=__doc__)
@click.argument("scores", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
def main(scores: Path, out: Path) -> None:
    """Draw the plot of SCORES."""
    students = group_seeds(json.loads(scores.read_text(encoding="utf-8")))
    figure = Figure(figsize=(6, 4), layout="constrained")
    geometry(figure.subplots(), students)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": out.stem}):  # the same file each time, and text as text
        figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main()
