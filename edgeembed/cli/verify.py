"""`edgeembed verify`: whether a bundle is the one that was exported, and gives the same here."""

import dataclasses
import json
from pathlib import Path

import click


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(bundle: Path, as_json: bool) -> None:
    """Check that a BUNDLE is the one that was exported, and gives the same vectors here.

    Its files are compared with their checksums. If all are right, the vectors that its exporter kept in it (its golden
    vectors) are compared with those that this machine gives for the same texts. Exit codes: 0 nothing differs; 1
    something does, which --json then lists too; 2 the folder cannot be read as a bundle (edgeembed.json or a file is
    missing or no such file), so that there is nothing to compare.
    """
    from edgeembed_runtime import Bundle
    from edgeembed_runtime.verification import verify

    opened = Bundle.open(bundle)
    found = verify(opened)
    files, size_bytes = len(opened.files), opened.size_bytes
    if as_json:
        result = {"bundle": str(bundle), "files": files, "size_bytes": size_bytes, "verified": not found.differences}
        click.echo(json.dumps({**result, **dataclasses.asdict(found)}, indent=2))
    found.demand(bundle)
    if not as_json:
        click.echo(f"{bundle}: {files} files, {size_bytes / 1e6:.2f} MB, as exported; it encodes")
        click.echo(found.golden_line())
