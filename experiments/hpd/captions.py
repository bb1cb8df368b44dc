"""Write the captions of pictures as a retrieval task, and how many of them are also in a student's training text.

    python -m experiments.hpd.captions captions5_en.tsv.xz nli_triplets.tsv.xz --out captions.tsv --shared shared.json

The first caption of a picture is a query, each other one a document that it is to find.
"""

import json
import lzma
from collections.abc import Iterable
from pathlib import Path

import click

_LEARNED_COLUMNS = 3


@click.command(help=__doc__)
@click.argument("captions", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("triplets", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="TSV to write.")
@click.option("--shared", required=True, type=click.Path(path_type=Path), help="JSON file of the counts to write.")
def main(captions: Path, triplets: Path, out: Path, shared: Path) -> None:
    """Write both files."""
    pictures = [[row[0], *filter(None, row[1:])] for row in _rows(captions)]
    learned = {text for row in _rows(triplets) for text in row[:_LEARNED_COLUMNS]}
    for file in (out, shared):
        file.parent.mkdir(parents=True, exist_ok=True)
    pairs = (f"{query}\t{document}\t1\n" for query, *documents in pictures for document in documents)
    out.write_text("question1\tquestion2\tis_duplicate\n" + "".join(pairs), encoding="utf-8")
    queries = {query for query, *_ in pictures}
    documents = {document for _, *found in pictures for document in found}
    counts = {"queries": len(queries), "shared_queries": len(queries & learned)}
    counts |= {"documents": len(documents), "shared_documents": len(documents & learned)}
    shared.write_text(json.dumps(counts) + "\n", encoding="utf-8")


def _rows(file: Path) -> Iterable[list[str]]:
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        next(lines)
        yield from (line.rstrip("\n").split("\t") for line in lines)


if __name__ == "__main__":
    main()
