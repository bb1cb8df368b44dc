"""Write the scores of students on the development set, the best first, as JSON.

python -m experiments.best_on_dev STUDENT... --out rates.json
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click


def dev_scores(folder: Path) -> list[float]:
    """Return a student's Spearman correlations x100 on the development set after each stage."""
    report = json.loads((folder / "edgeembed_student.json").read_text(encoding="utf-8"))["report"]
    scores: list[float] = report["dev_spearman"]
    return scores


def last_score(folder: Path) -> float:
    """Return a student's Spearman correlation x100 on the development set after its last stage."""
    return dev_scores(folder)[-1]


def rank(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return names and scores of students, the best first."""
    ranked = sorted(folders, key=last_score, reverse=True)
    return [{"name": folder.name, "dev_spearman": dev_scores(folder)} for folder in ranked]


@click.command(help=__doc__)
@click.argument("students", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="JSON file to write.")
def main(students: tuple[Path, ...], out: Path) -> None:
    """Write it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rank(students), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
