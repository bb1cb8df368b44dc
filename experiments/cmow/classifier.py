"""Train a classifier of a GLUE task at a learning rate, or with a seed at the best of its group's rates.

    python -m experiments.cmow.classifier experiments/cmow glue general rte --rate 1e-3
    python -m experiments.cmow.classifier experiments/cmow glue general rte --seed 1

A group is a parameter: `options` of `edgeembed finetune` for all of its classifiers, `with` those of single rows and
`tasks_with` of single tasks, `rates`, `rows` and `tasks`. `<task>` stands for the task's name. The folder is
GROUP/ROW/TASK/RUN, with the model, and its report in RATE-SEED.json. With the seed 0 it is a copy of the best rate's.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from experiments.cmow.glue_table import best_rate, read_runs
from experiments.parameters import Parameters, arguments, lookup, merge, read_parameters
from experiments.run import run_command


def classifier_line(parameters: Parameters, group: str, row: str, task: str, *, rate: str, seed: int) -> list[str]:
    """Return the arguments of `edgeembed` that train a classifier, without its `--out`."""
    settings = lookup(parameters, group)
    parts = (settings["options"], settings.get("with", {}).get(row, {}), settings.get("tasks_with", {}).get(task, {}))
    options = merge(lookup(parameters, f"glue_tasks.{task}"), *parts)
    rates = ["--set", f"learning_rate={rate}", "--set", f"classifier_learning_rate={rate}"]
    return ["finetune", *arguments(_of_task(options, task), parameters), *rates, "--seed", str(seed), "--json"]


def _of_task(options: Mapping[str, Any], task: str) -> dict[str, Any]:
    def named(value: Any) -> Any:  # YAML
        return [named(each) for each in value] if isinstance(value, list) else _named(value, task)

    return {name: named(value) for name, value in options.items()}


def _named(value: Any, task: str) -> Any:  # YAML
    return value.replace("<task>", task) if isinstance(value, str) else value


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("group")
@click.argument("row")
@click.argument("task")
@click.option("--rate", help="Learning rate to try.")
@click.option("--seed", type=click.IntRange(0), help="Seed, for the best rate.")
def main(folder: Path, group: str, row: str, task: str, rate: str | None, seed: int | None) -> None:
    """Train it."""
    if (rate is None) == (seed is None):
        raise click.UsageError("expected either --rate or --seed")
    parameters = read_parameters(folder)
    tried = Path(parameters["out"], parameters["name"], group, "rates", row, task)
    out = tried / f"rate-{rate}" if seed is None else tried.parents[2] / row / task / f"seed-{seed}"
    if rate is None:
        rates = lookup(parameters, group)["rates"]
        rate = best_rate(run for run in read_runs([tried]) if run.learning_rate in rates)
        if seed == 0:
            shutil.copytree(tried / f"rate-{rate}", out)
            return
    out.mkdir(parents=True)
    line = classifier_line(parameters, group, row, task, rate=rate, seed=seed or 0)
    with (out / f"{rate}-{seed or 0}.json").open("w", encoding="utf-8") as report:
        run_command([*line, "--out", str(out / "model")], stdout=report)


if __name__ == "__main__":
    main()
