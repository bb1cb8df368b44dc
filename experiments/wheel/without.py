"""Copy the text of the encoders in the wheel without one kind of it, for each kind.

python -m experiments.wheel.without experiments/wheel build/experiments/wheel/text OUT
"""

import shutil
from pathlib import Path

import click

from experiments.parameters import lookup, read_parameters


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("text", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
def main(folder: Path, text: Path, out: Path) -> None:
    """Write OUT/KIND for each kind."""
    for kind, names in lookup(read_parameters(folder), "kinds").items():
        shutil.copytree(text, out / kind, ignore=shutil.ignore_patterns(*(f"{name}.txt" for name in names)))


if __name__ == "__main__":
    main()
