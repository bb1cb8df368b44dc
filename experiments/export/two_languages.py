"""Write one of 50 lines of several files.

python -m experiments.export.two_languages FILE.txt.xz... --out two-languages.txt
"""

import lzma
from pathlib import Path

import click

_EVERY = 50


@click.command(help=__doc__)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path))
def main(files: tuple[Path, ...], out: Path) -> None:
    """Write them."""
    lines: list[str] = []
    for file in files:
        with lzma.open(file, "rt", encoding="utf-8") as opened:
            lines += opened
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(lines[_EVERY - 1 :: _EVERY]), encoding="utf-8")


if __name__ == "__main__":
    main()
