"""`edgeembed compare`: compare two reports of the benchmark."""

import json
from pathlib import Path

import click


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
    from edgeembed.cli.outputs import Outputs

    written = Outputs({"markdown": markdown}, force=force)

    from edgeembed_bench import compare_reports, comparison_dict, read_report
    from edgeembed_bench.render import markdown_comparison, terminal_comparison
    from rich.console import Console

    comparison = compare_reports(read_report(before), read_report(after), allow_unlike=unlike)
    written.write("markdown", lambda: markdown_comparison(comparison))
    if as_json:
        click.echo(json.dumps(comparison_dict(comparison), ensure_ascii=False, allow_nan=False))
    else:
        Console().print(terminal_comparison(comparison))
