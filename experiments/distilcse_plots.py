"""Plots of docs/results/distilcse.md: alignment against uniformity, and score against the number of sentences.

python -m experiments.distilcse_plots docs/results/distilcse.json docs/results
"""

import json
from pathlib import Path
from typing import Any

import click
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Runs of the same sentences and steps: (name of the student's folder, label).
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
# Folders of the runs by steps and sentences.
SCALE = {
    "240 steps": {15_000: "distilcse-15000-240", 60_000: "distilcse"},
    "480 steps": {60_000: "distilcse-60000-480", 120_000: "distilcse-120000-480"},
    "780 steps": {200_000: "distilcse-200000-780"},
}


def score(found: dict[str, Any], name: str) -> float:
    """Give a row's score of a task whose name ends so."""
    (value,) = (each["value"] for each in found["scores"] if each["task"].endswith(name))
    return float(value)


def geometry(axes: Axes, rows: dict[str, dict[str, Any]]) -> None:
    """Draw alignment against uniformity, both the lower the better."""
    for name, label in POINTS:
        if name in rows:
            axes.plot(score(rows[name], "uniformity"), score(rows[name], "alignment"), "o", label=label)
    axes.legend(fontsize=8)
    axes.set(xlabel="uniformity (lower is better)", ylabel="alignment (lower is better)")


def scale(axes: Axes, rows: dict[str, dict[str, Any]]) -> None:
    """Draw the average over similarity sets against sentences."""
    for label, runs in SCALE.items():
        found = {count: rows[name]["sts"]["average"] for count, name in runs.items() if name in rows}
        axes.plot(list(found), list(found.values()), "o-", label=label)
    axes.set(xscale="log", xlabel="sentences of stage 1", ylabel="average of four similarity sets")
    counts = sorted({count for runs in SCALE.values() for count in runs})
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.minorticks_off()
    axes.legend()


@click.command()
@click.argument("scores", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(scores: Path, folder: Path) -> None:
    """Draw both plots of SCORES into FOLDER."""
    models = json.loads(scores.read_text(encoding="utf-8"))
    rows = {Path(each["model"]).name: each for each in models}
    for name, draw in (("alignment-uniformity", geometry), ("scale", scale)):
        figure = Figure(figsize=(6, 4), layout="constrained")
        draw(figure.subplots(), rows)
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):  # the same file each time, and text as text
            figure.savefig(folder / f"distilcse-{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
