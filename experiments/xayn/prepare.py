"""Prepare data for Xayn's rankers.

    python -m experiments.xayn.prepare rows pairs.tsv.xz --count 6000 --out drawn.tsv
    python -m experiments.xayn.prepare dev-sets stsb_multi_mt en,de --out dev

`rows` draws rows of a table, the same in each run. `dev-sets` copies the development split of each language to where
`edgeembed evaluate --cross-lingual-sts` reads the test split.
"""

import lzma
import random
import shutil
from pathlib import Path

import click

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(help=__doc__)
def main() -> None:
    """Prepare data."""


@main.command()
@click.argument("table", type=_FILE)
@click.option("--count", required=True, type=click.IntRange(1))
@click.option("--out", required=True, type=click.Path(path_type=Path))
def rows(table: Path, count: int, out: Path) -> None:
    """Draw rows of a table."""
    with lzma.open(table, "rt", encoding="utf-8") as lines:
        header, *found = lines
    drawn = random.Random(0).sample(found, min(count, len(found)))  # noqa: S311  # no secret depends on it
    out.write_text("".join([header, *drawn]), encoding="utf-8")


@main.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("languages")
@click.option("--out", required=True, type=click.Path(path_type=Path))
def dev_sets(folder: Path, languages: str, out: Path) -> None:
    """Copy development splits."""
    for language in languages.split(","):
        (out / language).mkdir(parents=True)
        shutil.copyfile(folder / language / "dev.tsv", out / language / "test.tsv")


if __name__ == "__main__":
    main()
