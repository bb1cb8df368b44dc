"""Export a bundle with its report, or keep what the gate says of one that it refuses.

    python -m experiments.export.bundle experiments/export teacher_bundles OUT --precision int8

The folder OUT gets the bundle under OUT's own name, and report.json; or refused.txt, if the bundle is not as near to
its model as it has to be. Further options go to `edgeembed export`.
"""

import subprocess
import sys
from pathlib import Path

import click

from experiments.run import command_line

_REFUSED = 1  # exit status


@click.command(help=__doc__, context_settings={"ignore_unknown_options": True})
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("name")
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(folder: Path, name: str, out: Path, options: tuple[str, ...]) -> None:
    """Export it."""
    out.mkdir(parents=True)
    line = command_line(folder, "export", [name], [*options, "--out", str(out / out.name), "--json"])
    program = [sys.executable, "-m", "edgeembed.cli.main", *line]
    found = subprocess.run(program, capture_output=True, text=True, check=False)  # noqa: S603  # our own command
    click.echo(found.stderr, err=True, nl=False)
    if found.returncode == _REFUSED:
        (out / "refused.txt").write_text(found.stderr, encoding="utf-8")
    elif found.returncode:
        raise SystemExit(found.returncode)
    else:
        (out / "report.json").write_text(found.stdout, encoding="utf-8")


if __name__ == "__main__":
    main()
