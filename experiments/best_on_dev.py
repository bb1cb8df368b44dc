"""Print the folder of the student whose last stage scored best on the development set, or with `--all` all scores.

python experiments/best_on_dev.py STUDENT...
"""

import json
from pathlib import Path

import click


def dev_scores(folder: str) -> list[float]:
    """Return a student's Spearman correlations x100 on the development set after each stage."""
    report = json.loads((Path(folder) / "edgeembed_student.json").read_text(encoding="utf-8"))["report"]
    scores: list[float] = report["dev_spearman"]
    return scores


def last_score(folder: str) -> float:
    """Return a student's Spearman correlation x100 on the development set after its last stage."""
    return dev_scores(folder)[-1]


@click.command(help=__doc__)
@click.argument("students", nargs=-1, required=True, metavar="STUDENT...")
@click.option("--all", "shows_all", is_flag=True, help="Print all students and their scores as JSON, the best first.")
def main(students: tuple[str, ...], shows_all: bool) -> None:
    """Print the best one."""
    ranked = sorted(students, key=last_score, reverse=True)
    rows = [{"name": Path(folder).name, "dev_spearman": dev_scores(folder)} for folder in ranked]
    click.echo(json.dumps(rows, indent=1) if shows_all else ranked[0])


if __name__ == "__main__":
    main()
