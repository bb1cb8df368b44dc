"""Options that several commands share."""

from pathlib import Path

import click

sts_option = click.option(
    "--sts",
    multiple=True,
    type=click.Path(path_type=Path),
    help="TSV of scored sentence pairs: sentence1, sentence2, score. Repeatable.",
)
retrieval_option = click.option(
    "--retrieval",
    multiple=True,
    type=click.Path(path_type=Path),
    help="BEIR folder: corpus.jsonl, queries.jsonl, qrels/test.tsv. Repeatable.",
)
