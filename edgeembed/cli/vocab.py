"""`edgeembed vocab`: train or trim a vocabulary."""

from pathlib import Path
from typing import Any

import click

from edgeembed.cli.options import labeled_corpus_option
from edgeembed.cli.output import print_result


@click.command()
@labeled_corpus_option
@click.option("--size", type=int, required=True, help="Maximum vocabulary size, special tokens included.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The tokenizer.json to write.")
@click.option(
    "--smoothing",
    type=float,
    metavar="EXPONENT",
    help="Exponent of the languages' shares: 1 keeps them, 0 makes them equal.  [default: 0.7]",
)
@click.option("--trim", metavar="MODEL", help="Trim this model's vocabulary instead of training one.")
@click.option("--cased/--uncased", default=None, help="Keep or fold case.  [default: folded; kept with languages]")
@click.option(
    "--keep-accents/--fold-accents", default=None, help="[default: folded; kept with --cased and with languages]"
)
@click.option("--report/--no-report", default=True, show_default=True, help="Measure what the vocabulary covers.")
@click.option("--against", metavar="MODEL", multiple=True, help="Measure this model's vocabulary too. Repeatable.")
@click.option(
    "--limit", type=int, help="Use a random sample of this many sentences.  [default: all; with languages 1,000,000]"
)
@click.option("--seed", default=0, show_default=True, help="Random seed.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # one parameter per option
    sources: tuple[Path, ...],
    out: Path,
    cased: bool | None,
    keep_accents: bool | None,
    report: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a vocabulary on text, or trim a model's to it, and measure its coverage.

    A tenth of the sentences, at most 2,000, is held out; coverage is measured on those. With languages
    (--corpus de=FILE) the vocabulary is trained on a sample in which each language has its smoothed share: its share of
    the text raised to the power of --smoothing, normalized.
    """
    from edgeembed.cli.progress import TerminalReporter
    from edgeembed.vocabulary import train_vocabulary

    result = train_vocabulary(
        sources,
        out,
        lowercase=None if cased is None else not cased,
        strip_accents=None if keep_accents is None else not keep_accents,
        measure=report,
        reporter=TerminalReporter(),
        **options,
    )
    print_result(result, as_json=as_json)
