"""Print the scores of students that were trained with several seeds: a Markdown table with means over the seeds.

    python -m experiments.seed_table SCORES.json [--teacher NAME] [--rates RATES.json] [--out TABLE.md]
    python -m experiments.seed_table SCORES.json --task NAME [--task NAME...]

The file is `edgeembed evaluate`'s, of students in folders NAME-seed-SEED: a row for each name, in the order of the
file. With a teacher, it has an average over the tasks, without the columns "outside STS-B", and its share of the
teacher's. With `--task`, it has these tasks alone, and the score of each seed.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, TextIO

import click
from edgeembed_bench.render.markdown import markdown_table
from edgeembed_bench.render.tables import Table

_TITLES = {"sts12/test": "STS12", "sts14/test": "STS14", "stsb/test": "STS-B", "sickr/test": "SICK-R"}
_APART = ", outside STS-B"


def group_seeds(evaluations: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the evaluations by the name of the student, without its seed."""
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in evaluations:
        groups[re.sub(r"-seed-\d+$", "", Path(each["model"]).name)].append(each)
    return dict(groups)


def score_table(groups: Mapping[str, Sequence[Mapping[str, Any]]], teacher: str | None = None) -> Table:
    """Return a table of scores: means over the seeds, and the average of each seed.

    Args:
        groups: Evaluations of the same tasks, by name.
        teacher: The name of the teacher, to whose average the averages are compared; None for no averages.
    """
    tasks = [each["task"] for each in next(iter(groups.values()))[0]["scores"]]
    apart = [task for task in tasks if task.endswith(_APART)]
    sets = [task for task in tasks if task not in apart]
    full = fmean(_averages(groups[teacher], sets)) if teacher else None
    rows = []
    for name, seeds in groups.items():
        average = _average_cells(_averages(seeds, sets), full) if full else ()
        parameters = f"{seeds[0]['parameters']['parameters'] / 1e6:.3g}M" if seeds[0]["parameters"] else "-"
        rows.append((name, *_means(seeds, sets), *average, *_means(seeds, apart), parameters))
    average_columns = ("average (seeds)", "%") if full else ()
    columns = ("model", *map(_title, sets), *average_columns, *map(_title, apart), "parameters")
    return Table("", columns, tuple(rows), "")


def task_table(groups: Mapping[str, Sequence[Mapping[str, Any]]], tasks: Sequence[str]) -> Table:
    """Return a table of some tasks: the mean over the seeds, and the score of each seed."""
    rows = (
        (name, *(_mean_and_seeds([_values(each)[task] for each in seeds], 1) for task in tasks))
        for name, seeds in groups.items()
    )
    return Table("", ("model", *map(_title, tasks)), tuple(rows), "")


def rate_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return a table of scores on the development set, a column for each learning rate.

    Args:
        rows: What `experiments.best_on_dev` writes, of students in folders NAME-rate-RATE.
    """
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        name, _, rate = row["name"].rpartition("-rate-")
        scores[name][rate] = row["dev_spearman"][-1]
    rates = sorted({rate for found in scores.values() for rate in found}, key=float)
    cells = (
        (name, *(f"{found[rate]:.2f}" if rate in found else "-" for rate in rates)) for name, found in scores.items()
    )
    return Table("", ("STS-B dev", *rates), tuple(cells), "")


def _title(task: str) -> str:
    name = task.removesuffix(_APART)
    return _TITLES.get(name, name) + task[len(name) :]


def _values(evaluation: Mapping[str, Any]) -> dict[str, float]:
    return {score["task"]: score["value"] for score in evaluation["scores"]}


def _means(evaluations: Sequence[Mapping[str, Any]], tasks: Iterable[str]) -> list[str]:
    return [f"{fmean(_values(each)[task] for each in evaluations):.2f}" for task in tasks]


def _average_cells(averages: Sequence[float], full: float) -> tuple[str, str]:
    return _mean_and_seeds(averages, 2), f"{100 * fmean(averages) / full:.1f}"


def _mean_and_seeds(scores: Sequence[float], digits: int) -> str:
    spread = f" ({', '.join(f'{each:.{digits}f}' for each in scores)})" if len(scores) > 1 else ""
    return f"{fmean(scores):.{digits}f}{spread}"


def _averages(evaluations: Iterable[Mapping[str, Any]], sets: Sequence[str]) -> list[float]:
    return [fmean(_values(each)[task] for task in sets) for each in evaluations]


@click.command(help=__doc__)
@click.argument("scores", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--teacher", help="The teacher's name in the file.")
@click.option("--rates", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Scores of each rate.")
@click.option("--task", "tasks", multiple=True, help="A task of the file; the table has only these. Repeatable.")
@click.option("--out", default="-", type=click.File("w", encoding="utf-8"), help="Write the tables to a file.")
def main(scores: Path, teacher: str | None, rates: Path | None, tasks: tuple[str, ...], out: TextIO) -> None:
    """Print the tables."""
    groups = group_seeds(json.loads(scores.read_text(encoding="utf-8")))
    if teacher is not None and teacher not in groups:
        raise click.BadParameter(f"{teacher!r} is not in {scores}; expected one of: {', '.join(groups)}")
    if tasks and teacher is not None:
        raise click.UsageError("--teacher compares averages, which a table of --task has not; give one of the two")
    known = _values(next(iter(groups.values()))[0])
    for task in tasks:
        if task not in known:
            raise click.BadParameter(f"{task!r} is not in {scores}; expected one of: {'; '.join(sorted(known))}")
    click.echo(markdown_table(task_table(groups, tasks) if tasks else score_table(groups, teacher)), file=out)
    if rates is not None:
        click.echo("\n" + markdown_table(rate_table(json.loads(rates.read_text(encoding="utf-8")))), file=out)


if __name__ == "__main__":
    main()
