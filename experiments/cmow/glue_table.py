"""Print the scores of classifiers of GLUE tasks as a Markdown table, and write all of them to a JSON file.

    python -m experiments.cmow.glue_table STUDENT/TASK... --out docs/results/cmow-glue.json

Reads what `edgeembed finetune --json` printed into STUDENT/TASK/RUN/RATE-SEED.json. Of each student and task the table
has the learning rate whose seed 0 is best on the development split: the median over the seeds, each of them, and the
median's share of the score of the task's teacher, which is the student called "teacher".
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
    """Return the run whose report is in STUDENT/TASK/RUN/RATE-SEED.json."""
    report = json.loads(file.read_text(encoding="utf-8"))
    rate, _, seed = file.stem.rpartition("-")
    task, student = file.parents[1].name, file.parents[2].name
    return Run(student, task, rate, int(seed), report["metric"], report["metrics"], len(report["history"]))


def read_runs(folders: Iterable[Path]) -> list[Run]:
    """Return the runs in folders STUDENT/TASK, in the order of their names; a run that is there twice counts once."""
    runs = {(run.student, run.task, run.learning_rate, run.seed): run for run in map(read_run, _reports(folders))}
    return [run for _, run in sorted(runs.items())]


def _reports(folders: Iterable[Path]) -> list[Path]:
    return [file for folder in folders for file in folder.glob("*/*-[0-9].json")]


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
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="JSON file for all runs.")
def main(folders: tuple[Path, ...], out: Path | None) -> None:
    """Print the table."""
    runs = read_runs(folders)
    if not runs:
        raise click.BadParameter(f"{folders[0]} has no reports; expected files such as seed-0/1e-3-0.json")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps([asdict(run) for run in runs], indent=1) + "\n", encoding="utf-8")
    click.echo(markdown_table(glue_table(runs)))


if __name__ == "__main__":
    main()
