"""`edgeembed evaluate`: a model or bundle and labelled files in, scores out."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgeembed.cli.options import retrieval_option, sts_option

if TYPE_CHECKING:
    from rich.table import Table

    from edgeembed.evaluation import Evaluation


@click.command()
@click.argument("model", metavar="MODEL|BUNDLE")
@click.option("--against", metavar="MODEL|BUNDLE", help="A reference, usually the teacher.")
@sts_option
@retrieval_option
@click.option("--out", type=click.Path(path_type=Path), help="Write the scores to a JSON file.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def command(
    model: str,
    against: str | None,
    sts: tuple[Path, ...],
    retrieval: tuple[Path, ...],
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Score a model or bundle on similarity and retrieval files."""
    from edgeembed_runtime.errors import InputError

    from edgeembed.cli.outputs import Outputs

    if not sts and not retrieval:
        raise InputError("nothing to evaluate on; expected --sts FILE or --retrieval DIR, as often as wanted")
    written = Outputs({"json": out}, force=force, inputs=[*sts, *retrieval])

    from edgeembed.cli.progress import TerminalReporter
    from edgeembed.evaluation import evaluate

    evaluation = evaluate(model, sts=sts, retrieval=retrieval, against=against, reporter=TerminalReporter())
    text = json.dumps(evaluation.as_dict(), indent=2, ensure_ascii=False)
    written.write("json", lambda: text)
    if as_json:
        click.echo(text)
    else:
        from rich.console import Console

        Console().print(_table(evaluation))


def _table(evaluation: "Evaluation") -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("task", overflow="fold")
    table.add_column("metric", overflow="fold")
    for title in ("items", "score", *(["reference", "percent"] if evaluation.reference else [])):
        table.add_column(title, justify="right")
    rows = [[score.task, score.metric, f"{score.items:,}", f"{score.value:.1f}"] for score in evaluation.scores]
    for row, comparison in zip(rows, evaluation.comparisons, strict=False):
        percent = "-" if comparison.percent is None else f"{comparison.percent:.1f}"
        row += [f"{comparison.reference.value:.1f}", percent]
    for row in rows:
        table.add_row(*row)
    return table
