"""`edgeembed verify`: whether a bundle is the one that was exported, and runs."""

import json
from pathlib import Path

import click

_TEXT = "A text that every encoder can read."


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(bundle: Path, as_json: bool) -> None:
    """Check that a BUNDLE's files are the ones that were exported, and that it encodes."""
    import numpy as np
    from edgeembed_runtime import Encoder
    from edgeembed_runtime.errors import CheckError

    encoder = Encoder.load(bundle, verify=True)
    length = float(np.linalg.norm(encoder.encode(_TEXT)))
    if not abs(length - 1) < 1e-3:  # so that NaN is refused too
        raise CheckError(f"{bundle} gives a vector of length {length:g}, expected 1; export the bundle again")
    files = len(encoder.bundle.files)
    if as_json:
        result = {
            "bundle": str(bundle),
            "files": files,
            "size_bytes": encoder.bundle.size_bytes,
            "verified": True,
        }
        click.echo(json.dumps(result, indent=2))
    else:
        size = f"{encoder.bundle.size_bytes / 1e6:.2f} MB"
        click.echo(f"{bundle}: {files} files, {size}, as exported; it encodes")
