"""The command `edgeembed verify`."""

import json

import click
from edgeembed_runtime.errors import BundleError

from edgeembed.cli.output import print_result


@click.command()
@click.argument("bundle", metavar="BUNDLE")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(bundle: str, as_json: bool) -> None:
    """Check that a BUNDLE has the exported files, and computes the exporter's embeddings here.

    BUNDLE is a folder, or a built-in bundle by name (mini, nano, micro; ./mini is a folder of that name).

    Its files are compared with their checksums. If all match, the embeddings in golden.json, which the exporter
    computed, are compared with the embeddings of the same texts on this machine. Exit codes: 0 nothing differs; 1
    something differs; 2 the folder cannot be read as a bundle. --json lists the differences in each case.
    """
    from edgeembed.exporting import verify

    try:
        report = verify(bundle)
    except BundleError as error:
        if as_json:
            unread = {"files": None, "size_bytes": None, "verified": False, "differences": [str(error)], "golden": None}
            click.echo(json.dumps({"bundle": bundle, **unread}, indent=2))
        raise
    if as_json:
        print_result(report, as_json=True)
    report.raise_for_differences()
    if not as_json:
        print_result(report, as_json=False)
