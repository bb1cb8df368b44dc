"""`edgeembed evaluate`: score models side by side."""

from pathlib import Path
from typing import Any

import click

from edgeembed.cli.output import print_result
from edgeembed.cli.task_options import GivenTasks, TaskCommand


@click.command(cls=TaskCommand, before="add_to")
@click.argument("models", metavar="MODEL|BUNDLE...", nargs=-1, required=True)
@click.option("--against", metavar="MODEL|BUNDLE", help="Reference model, usually the teacher.")
@click.option(
    "--add-to",
    metavar="FILE",
    help="JSON of earlier scores on the same tasks, with the same --against: the models are added to it in the output.",
)
@click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where the scores of --against are kept.  [default: edgeembed/evaluation in ~/.cache]",
)
@click.option("--no-cache", is_flag=True, help="Score --against again, and keep nothing.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the scores to a JSON file.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables as Markdown.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def command(  # noqa: PLR0913  # one parameter per option
    models: tuple[str, ...],
    against: str | None,
    add_to: str | None,
    cache: Path | None,
    no_cache: bool,
    out: Path | None,
    markdown: Path | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Score models or bundles, side by side.

    MODEL|BUNDLE is a built-in bundle (mini, nano, micro), a folder (./mini), an installed package that carries a model,
    or a hub id. Options that name files are tasks; scores and tables are in their order. Each score is printed when it
    is there, on stderr. The JSON is an object for one MODEL, a list for several.
    """
    from edgeembed_runtime.errors import InputError

    from edgeembed.cli.options import Outputs
    from edgeembed.cli.progress import TerminalReporter
    from edgeembed.evaluation.evaluate import evaluate

    if no_cache and cache is not None:
        raise InputError("--cache is given with --no-cache; expected one of them")
    given = GivenTasks.take(options)
    written = Outputs({"json": out, "markdown": markdown}, force=force, inputs=given.inputs)
    kept = False if no_cache else cache or True
    report = evaluate(models, given.read(), against=against, add_to=add_to, cache=kept, reporter=TerminalReporter())
    written.write("json", report.to_json)
    written.write("markdown", report.to_markdown)
    if as_json:
        print_result(report, as_json=True)
        return

    from edgeembed_bench.render import terminal_tables
    from rich.console import Console

    Console().print(terminal_tables(report.tables))
