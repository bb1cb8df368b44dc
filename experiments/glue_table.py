"""Print the scores of classifiers of GLUE tasks as a Markdown table, and write all of them to a JSON file.

    python -m experiments.glue_table build/cmow/glue --out docs/results/cmow-glue.json

Reads what `edgeembed finetune --json` printed into FOLDER/STUDENT/TASK/RATE-SEED.json. Of each student and task the
table has the learning rate whose seed 0 is best on the development split: the median over the seeds, each of them, and
the median's share of the score of the task's teacher, which is the student called "teacher".
`--known FILE` adds the runs of an earlier JSON file that are not in the folder. `--task` limits the table to some
tasks, not the file. `--best FOLDER/STUDENT/TASK` prints the best learning rate alone.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

import click
from edgeembed_bench.render.markdown import markdown_table
from edgeembed_bench.render.tables import Table

_TITLES = {"cola": "CoLA", "sst2": "SST-2", "mrpc": "MRPC", "stsb": "STS-B", "mnli": "LingNLI", "rte": "RTE"}
_TEACHER = "teacher"


@dataclass(frozen=True)
class Run:
    """A classifier of a task.

    Attributes:
        student: The name of what was trained.
        task: The task's name.
        learning_rate: The learning rate, as it is written in the file's name.
        seed: The random seed.
        metric: The metric that chose the epoch.
        metrics: All metrics on the development split, times 100.
        epochs: The number of epochs until training stopped.
    """

    student: str
    task: str
    learning_rate: str
    seed: int
    metric: str
    metrics: dict[str, float]
    epochs: int

    @property
    def score(self) -> float:
        """The metric that chose the epoch, times 100."""
        return self.metrics[self.metric]


def read_run(file: Path) -> Run:
    """Return the run whose report is in FOLDER/STUDENT/TASK/RATE-SEED.json."""
    report = json.loads(file.read_text(encoding="utf-8"))
    rate, _, seed = file.stem.rpartition("-")
    task, student = file.parent.name, file.parent.parent.name
    return Run(student, task, rate, int(seed), report["metric"], report["metrics"], len(report["history"]))


def read_runs(folder: Path) -> list[Run]:
    """Return the runs below a folder, in the order of their names; reports that are still empty are left out."""
    return [read_run(file) for file in sorted(folder.rglob("*-[0-9].json")) if file.stat().st_size]


def add_known(runs: Iterable[Run], file: Path) -> list[Run]:
    """Return these runs and those that only an earlier JSON file has, in the order of their names."""
    known = (Run(**each) for each in json.loads(file.read_text(encoding="utf-8")))
    return [run for _, run in sorted(({_key(run): run for run in known} | {_key(run): run for run in runs}).items())]


def _key(run: Run) -> tuple[str, str, str, int]:
    return run.student, run.task, run.learning_rate, run.seed


def best_rate(runs: Iterable[Run]) -> str:
    """Return the learning rate whose seed 0 has the best score, of runs of one student and task."""
    return max((run for run in runs if run.seed == 0), key=lambda run: run.score).learning_rate


def glue_table(runs: Sequence[Run]) -> Table:
    """Return a table with a row for each student and a column for each task, and the average over the tasks.

    A student that lacks one of the tasks has no average.
    """
    tasks = [task for task in _TITLES if any(run.task == task for run in runs)]
    teachers = {run.task: run.score for run in runs if run.student == _TEACHER}
    rows = []
    for student in dict.fromkeys(run.student for run in runs):
        found = {task: _seeds([run for run in runs if (run.student, run.task) == (student, task)]) for task in tasks}
        scores = [median(seeds.values()) for seeds in found.values() if seeds]
        average = f"{fmean(scores):.1f}" if len(scores) == len(tasks) else "-"
        rows.append((student, average, *(_cell(found[task], teachers.get(task)) for task in tasks)))
    return Table("", ("student", "average", *(_TITLES[task] for task in tasks)), tuple(rows), "")


def _seeds(runs: Sequence[Run]) -> Mapping[int, float]:
    """Return the score of each seed at the best learning rate."""
    best = best_rate(runs) if runs else None
    return {run.seed: run.score for run in runs if run.learning_rate == best}


def _cell(seeds: Mapping[int, float], teacher: float | None) -> str:
    if not seeds:
        return "-"
    score, scores = median(seeds.values()), [f"{seeds[seed]:.1f}" for seed in sorted(seeds)]
    spread = f" ({', '.join(scores)})" if len(scores) > 1 else ""
    return f"{score:.1f}{spread}" + (f", {100 * score / teacher:.0f} %" if teacher else "")


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="JSON file for all runs.")
@click.option(
    "--known", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="An earlier JSON file to add."
)
@click.option(
    "--task", "tasks", multiple=True, type=click.Choice(list(_TITLES)), help="A task of the table. Repeatable."
)
@click.option("--best", is_flag=True, help="Print the best learning rate of a student's task, and no table.")
def main(folder: Path, out: Path | None, known: Path | None, tasks: tuple[str, ...], best: bool) -> None:
    """Print the table."""
    runs = read_runs(folder)
    if known is not None:
        runs = add_known(runs, known)
    if not runs:
        raise click.BadParameter(f"{folder} has no reports; expected files such as STUDENT/TASK/1e-3-0.json")
    if out is not None:
        out.write_text(json.dumps([asdict(run) for run in runs], indent=1) + "\n", encoding="utf-8")
    if tasks:
        runs = [run for run in runs if run.task in tasks]
    click.echo(best_rate(runs) if best else markdown_table(glue_table(runs)))


if __name__ == "__main__":
    main()
