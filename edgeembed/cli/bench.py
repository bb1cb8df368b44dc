"""`edgeembed bench`: measure the cost of models side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgeembed.cli.options import Outputs
from edgeembed.cli.output import print_result
from edgeembed.cli.task_options import GivenTasks, TaskCommand

if TYPE_CHECKING:
    from edgeembed_bench.renderable import Renderable
    from rich.console import Group

_LIMIT = click.FloatRange(min=0)
_PRESETS = ("runtime",)  # equal to edgeembed_bench.presets.PRESETS, which --help does not import


@click.command(cls=TaskCommand, kinds=("sts", "retrieval"), before="unscored")
@click.argument("models", metavar="SUBJECT...", nargs=-1)
@click.option(
    "--against",
    metavar="SUBJECT",
    multiple=True,
    help="Subject to compare with. The first one is the baseline; without it, the first SUBJECT is. Repeatable.",
)
@click.option(
    "--preset",
    type=click.Choice(_PRESETS),
    help="runtime: the built-in models, with limits on cold start, memory and call overhead. Exit with 1 if a whole "
    "95 % interval is above its limit; an interval that contains the limit does not fail.",
)
@click.option(
    "--peers",
    type=click.Path(path_type=Path),
    help="Folder of the preset's peers, built by `make bench-runtime`.  [default: build/bench-runtime]",
)
@click.option(
    "--texts",
    metavar="FILE",
    help="File of texts to encode, or - for stdin; any corpus format.  [default: sentences of Python's docstrings]",
)
@click.option("--runs", default=1000, show_default=True, type=click.IntRange(min=1), help="Timed texts per subject.")
@click.option(
    "--processes",
    default=10,
    show_default=True,
    type=click.IntRange(min=1),
    help="Fresh processes per subject; fewer than 8 allow no significance test.",
)
@click.option(
    "--threads",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Threads per subject, at most one a core.",
)
@click.option(
    "--sweep/--no-sweep", default=None, help="Also time texts of 4 to 512 tokens.  [default: sweep, unless --preset]"
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Seed of the order in which subjects take turns.",
)
@click.option(
    "--unscored", metavar="NAME", multiple=True, help="Do not score this subject on --sts and --retrieval. Repeatable."
)
@click.option(
    "--max-latency-ratio",
    type=_LIMIT,
    help="Exit with 1 if the latency ratio of a SUBJECT to the baseline is higher, with its whole 95 % interval.",
)
@click.option("--max-mb", "max_size_mb", type=_LIMIT, help="Exit with 1 if a SUBJECT is larger, in 10^6 bytes.")
@click.option(
    "--min-quality",
    type=_LIMIT,
    help="Exit with 1 if the mean score of a SUBJECT is lower, in percent of the baseline's.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the report, with all samples, as JSON.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a self-contained page with plots.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables as Markdown.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(
    models: tuple[str, ...],
    out: Path | None,
    html: Path | None,
    markdown: Path | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure the cost of models side by side.

    SUBJECT is [NAME=][KIND:]WHAT[@PYTHON]. NAME is everything before the first =. WHAT is a bundle (built in: mini,
    nano, micro; or a folder), a student, a sentence-transformer (a folder, a hub id, an installed package that carries
    one), a model2vec folder, or module:function, which takes texts and returns embeddings. KIND is detected, or is one
    of bundle, sentence-transformer, sentence-transformer-onnx, onnx, model2vec, fastembed, function. PYTHON is the
    interpreter of another environment, for packages that cannot be installed beside these.

    Each subject runs in fresh processes, on the same cores; subjects take turns in shuffled order.
    """
    from edgeembed_bench.machine import check_threads
    from edgeembed_runtime.errors import CheckError

    if not models and options["preset"] is None:
        raise click.UsageError("Missing argument 'SUBJECT...': give one or more subjects, or --preset.")
    check_threads(options["threads"])  # before the imports below, which take seconds
    given = GivenTasks.take(options)
    inputs = [*filter(None, [options["texts"]]), *given.inputs]
    written = Outputs({"json": out, "html": html, "markdown": markdown}, force=force, inputs=inputs)

    from edgeembed_bench.render import terminal_report

    from edgeembed.benchmarking import benchmark
    from edgeembed.cli.progress import TerminalReporter

    report = benchmark(models, tasks=given.read(), reporter=TerminalReporter(), **options)
    _output(report, written, None if as_json else terminal_report(report))
    failed = {check.failure: check.result for check in report.limit_checks() if check.failure is not None}
    if failed:
        reason = "over budget" if "exceeded" in failed.values() else "limits not checked"
        raise CheckError(f"{reason}: {'; '.join(failed)}")


def _output(result: "Renderable", written: "Outputs", rendered: "Group | None") -> None:
    """Write the requested files, and print tables as wide as the terminal, or JSON if there are none."""
    written.write("json", result.to_json)
    written.write("html", result.to_html)
    written.write("markdown", result.to_markdown)
    if rendered is None:
        print_result(result, as_json=True)
        return
    from rich.console import Console

    Console().print(rendered)
