"""The command `edgeembed export`."""

import sys
from pathlib import Path
from typing import Any

import click

from edgeembed.cli.options import settings_options
from edgeembed.cli.output import print_result
from edgeembed.export_settings import ExportSettings


@click.command()
@click.argument("model", metavar="MODEL")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the bundle.")
@settings_options(ExportSettings)
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(model: str, out: Path, force: bool, as_json: bool, keywords: dict[str, Any]) -> None:
    """Export a MODEL as a bundle, unless the bundle misses a limit.

    MODEL is a folder, an installed package that carries a model, or a hub id.
    """
    from edgeembed_exporters import GateError
    from edgeembed_exporters.gate import worst_lines

    from edgeembed.cli.progress import TerminalReporter, note
    from edgeembed.exporting import export

    try:
        report = export(model, out, force=force, reporter=TerminalReporter(), command=sys.argv[1:], **keywords)
    except GateError as error:
        for line in worst_lines(error.parity) if error.parity else ():
            note(line)
        raise
    print_result(report, as_json=as_json)
