"""Write some sentences of each of several files, the same in each run: more text for HPD's students.

python -m experiments.hpd.more_text FILE.txt.xz... --count 3000 --out more.txt
"""

import lzma
import random
from pathlib import Path

import click

_MIN_CHARACTERS, _MAX_CHARACTERS = 10, 120


@click.command(help=__doc__)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--count", required=True, type=click.IntRange(1), help="Sentences of each file.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Text file to write.")
def main(files: tuple[Path, ...], count: int, out: Path) -> None:
    """Write them."""
    rng = random.Random(0)  # noqa: S311  # no secret depends on it
    drawn = []
    for file in files:
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            kept = [line for line in lines if _MIN_CHARACTERS <= len(line.rstrip("\n")) <= _MAX_CHARACTERS]
        drawn += rng.sample(kept, min(count, len(kept)))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(drawn), encoding="utf-8")


if __name__ == "__main__":
    main()
