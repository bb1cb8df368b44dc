"""Print the folder of the student whose last stage scored best on the development set.

python experiments/best_on_dev.py STUDENT...
"""

import json
from pathlib import Path

import click


def dev_score(folder: str) -> float:
    """Return a student's Spearman correlation x100 on the development set after its last stage."""
    report = json.loads((Path(folder) / "edgeembed_student.json").read_text(encoding="utf-8"))["report"]
    return float(report["dev_spearman"][-1])


@click.command(help=__doc__)
@click.argument("students", nargs=-1, required=True, metavar="STUDENT...")
def main(students: tuple[str, ...]) -> None:
    """Print the best one."""
    click.echo(max(students, key=dev_score))


if __name__ == "__main__":
    main()
