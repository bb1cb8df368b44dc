"""`edgeembed compare`: compare two reports of the benchmark."""

from pathlib import Path

import click

from edgeembed.cli.output import print_result


@click.command()
@click.argument("before", metavar="A.json", type=click.Path(path_type=Path))
@click.argument("after", metavar="B.json", type=click.Path(path_type=Path))
@click.option("--unlike", is_flag=True, help="Compare even if machines, settings or texts differ.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the table as Markdown.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def command(before: Path, after: Path, unlike: bool, markdown: Path | None, force: bool, as_json: bool) -> None:
    """Compare two reports that `edgeembed bench --out` wrote.

    Reports of different machines, settings or texts are not compared, unless --unlike is given.
    """
    from edgeembed.cli.options import Outputs

    written = Outputs({"markdown": markdown}, force=force)

    from edgeembed_bench.render import terminal_comparison
    from rich.console import Console

    from edgeembed.benchmarking import compare

    comparison = compare(before, after, allow_unlike=unlike)
    written.write("markdown", comparison.to_markdown)
    if as_json:
        print_result(comparison, as_json=True)
    else:
        Console().print(terminal_comparison(comparison))
