"""Options that several commands share."""

from pathlib import Path

import click

sts_option = click.option(
    "--sts",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE|DIR",
    help="TSV of scored sentence pairs: sentence1, sentence2, score. Or a folder of the papers' seven sets: "
    "sts12/test.tsv to sts16/test.tsv, stsb/test.tsv, sickr/test.tsv, those that it has. Repeatable.",
)
retrieval_option = click.option(
    "--retrieval",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR|FILE",
    help="BEIR folder: corpus.jsonl, queries.jsonl, qrels/test.tsv. Or a TSV of duplicate questions: question1, "
    "question2, is_duplicate. Repeatable.",
)
