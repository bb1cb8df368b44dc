"""Train a student of a pipeline's group at a learning rate, or with a seed at the best of the group's rates.

    python -m experiments.student experiments/simtde long simtde-small --rate 1e-3
    python -m experiments.student experiments/simtde long simtde-small --seed 1

A group is a parameter: `options` of `edgeembed distill` for all of its students, `with` those of single students (a
recipe, where it is not the student's name), `rates` and `rows`, the names of the students. A rate is tried with the
seed 0, and is that of the first stage. With a seed, the student has the rate that is best on STS-B dev, or the recipe's
where the group has no rates; the seed 0 is a copy of the student at that rate.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from experiments.best_on_dev import last_score
from experiments.parameters import arguments, lookup, merge, read_parameters
from experiments.run import run_command


def student_options(group: Mapping[str, Any], row: str) -> dict[str, Any]:
    """Return the options of `edgeembed distill` for a student of a group, its recipe included."""
    return merge({"recipe": row}, group["options"], group.get("with", {}).get(row, {}))


def student_folder(parameters: Mapping[str, Any], group: str, row: str, *, rate: str | None, seed: int) -> Path:
    """Return the folder of a student at a rate that is tried, or with a seed if `rate` is None."""
    folder = Path(parameters["out"], parameters["name"], group)
    return folder / f"{row}-seed-{seed}" if rate is None else folder / "rates" / row / f"{row}-rate-{rate}"


def student_line(folder: Path, group: str, row: str, *, rate: str | None, seed: int) -> list[str]:
    """Return the arguments of `edgeembed` that train a student, without its `--out`."""
    parameters = read_parameters(folder)
    line = ["distill", *arguments(student_options(lookup(parameters, group), row), parameters)]
    if rate is not None:
        line += ["--set", f"stages.0.learning_rate={rate}"]
    if "--cache" not in line:
        line += ["--cache", str(Path(parameters["out"], parameters["name"], "cache"))]
    return [*line, "--seed", str(seed), "--resume"]


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("group")
@click.argument("row")
@click.option("--rate", help="Learning rate to try.")
@click.option("--seed", type=click.IntRange(0), help="Seed, for the best rate.")
def main(folder: Path, group: str, row: str, rate: str | None, seed: int | None) -> None:
    """Train it."""
    if (rate is None) == (seed is None):
        raise click.UsageError("expected either --rate or --seed")
    parameters = read_parameters(folder)
    out = student_folder(parameters, group, row, rate=rate, seed=seed or 0)
    if rate is None:
        rates = lookup(parameters, group).get("rates", [])
        tried = {each: student_folder(parameters, group, row, rate=each, seed=0) for each in rates}
        rate = max(tried, key=lambda each: last_score(tried[each]), default=None)
        if rate is not None and seed == 0:
            shutil.copytree(tried[rate], out)
            return
    run_command([*student_line(folder, group, row, rate=rate, seed=seed or 0), "--out", str(out)])


if __name__ == "__main__":
    main()
