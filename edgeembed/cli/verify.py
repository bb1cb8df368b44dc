"""`edgeembed verify`: whether a bundle is the one that was exported, and gives the same here."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import click
from edgeembed_runtime.errors import BundleError


@click.command()
@click.argument("bundle", metavar="BUNDLE")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(bundle: str, as_json: bool) -> None:
    """Check that a BUNDLE is the one that was exported, and gives the same vectors here.

    BUNDLE is a folder, or a built-in bundle by name (mini, nano; ./mini is a folder of that name).

    Its files are compared with their checksums. If all are right, the vectors that its exporter kept in it (its golden
    vectors) are compared with those that this machine gives for the same texts. Exit codes: 0 nothing differs; 1
    something does; 2 the folder cannot be read as a bundle (edgeembed.json or a file is missing or no such file), so
    that there is nothing to compare. --json lists what differs in each case.
    """
    from edgeembed_runtime import Bundle
    from edgeembed_runtime.verification import verify

    from edgeembed.models import built_in_bundle

    try:
        opened = Bundle.open(built_in_bundle(bundle) or Path(bundle))
        found = verify(opened)
    except BundleError as error:
        if as_json:
            _print(bundle, {"files": None, "size_bytes": None, "verified": False, "differences": [str(error)]})
        raise
    files, size_bytes = len(opened.files), opened.size_bytes
    if as_json:
        result = {"files": files, "size_bytes": size_bytes, "verified": not found.differences}
        _print(bundle, result | dataclasses.asdict(found))
    found.raise_for_differences(bundle)
    if not as_json:
        click.echo(f"{bundle}: {files} files, {size_bytes / 1e6:.2f} MB, as exported; it encodes")
        click.echo(found.golden_line())


def _print(bundle: str, result: dict[str, Any]) -> None:
    click.echo(json.dumps({"bundle": bundle, **result, "golden": result.get("golden")}, indent=2))
