"""`edgeembed vocab`: text in, a tokenizer and an account of what it covers out."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgeembed.cli.options import corpus_option

if TYPE_CHECKING:
    from rich.table import Table
    from tokenizers import Tokenizer

    from edgeembed.vocabulary import Coverage

_MOST_HELD_OUT = 2000
_LEAST_SHARE_TO_TRAIN_ON = 10  # tenths: one sentence in ten is held out at the most


@click.command()
@corpus_option
@click.option("--size", type=int, required=True, help="Tokens in the vocabulary, special ones included.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The tokenizer.json to write.")
@click.option("--trim", metavar="MODEL", help="Cut the vocabulary from this model's, in place of training one.")
@click.option("--report/--no-report", default=True, show_default=True, help="Tell what the vocabulary covers.")
@click.option("--against", metavar="MODEL", multiple=True, help="Report on this model's vocabulary too. Repeatable.")
@click.option("--limit", type=int, help="Use a random sample of this many sentences.")
@click.option("--seed", default=0, show_default=True, help="Decides every draw.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    sources: tuple[str, ...],
    size: int,
    out: Path,
    trim: str | None,
    report: bool,
    against: tuple[str, ...],
    limit: int | None,
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Train a vocabulary on text, or trim a model's to it, and tell what it covers.

    One sentence in ten, 2,000 at the most, is kept out of the vocabulary's making; the report is measured on
    those.
    """
    from edgeembed_runtime.storage.writing import new_file, refuse_existing

    refuse_existing(out, force=force)

    from edgeembed.cli.progress import TerminalReporter, note
    from edgeembed.corpus import gather_corpus, split_holdout
    from edgeembed.models import load_tokenizer
    from edgeembed.vocabulary import measure_coverage

    peers = {name: load_tokenizer(name) for name in dict.fromkeys([*([trim] if trim else []), *against])}
    progress = TerminalReporter()
    with progress.step("corpus"):
        corpus = gather_corpus(sources, limit=limit, seed=seed)
    note(f"corpus: {corpus.counts}")
    sentences, held_out = split_holdout(corpus.sentences, min(_MOST_HELD_OUT, len(corpus.sentences) // 10), seed)
    with progress.step("vocabulary"):
        tokenizer = _make(sentences, size, peers[trim] if trim else None)
    with new_file(out, force=force) as path:
        path.write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    coverage = {}
    if report:
        tokenizers = {str(out): tokenizer, **peers}
        coverage = {name: measure_coverage(peer, held_out or sentences) for name, peer in tokenizers.items()}
    _show(out, tokenizer.get_vocab_size(), corpus.counts.to_dict(), coverage, as_json=as_json)


def _make(sentences: Sequence[str], size: int, source: "Tokenizer | None") -> "Tokenizer":
    from edgeembed.vocabulary import train_vocabulary, trim_vocabulary

    return train_vocabulary(sentences, size) if source is None else trim_vocabulary(source, sentences, size)


def _show(out: Path, size: int, counts: dict[str, int], coverage: "dict[str, Coverage]", *, as_json: bool) -> None:
    if as_json:
        measured = {name: row.to_dict() for name, row in coverage.items()}
        click.echo(json.dumps({"out": str(out), "size": size, "corpus": counts, "coverage": measured}, indent=2))
        return
    click.echo(f"{out}: {size:,} tokens")
    if coverage:
        from rich.console import Console

        Console().print(coverage_table(coverage))


def coverage_table(coverage: "dict[str, Coverage]") -> "Table":
    """Give a table that shows vocabularies side by side.

    Args:
        coverage: What each vocabulary covers, by its name; all measured on the same text.
    """
    from rich.table import Table

    sentences = next(iter(coverage.values())).sentences
    table = Table(title=f"coverage of {sentences:,} sentences", title_justify="left")
    table.add_column("vocabulary", overflow="fold")
    for name in ("tokens", "kB", "unknown", "tokens a word"):
        table.add_column(name, justify="right")
    for name, row in coverage.items():
        unknown = "none" if row.unknown_rate is None else f"{row.unknown_rate:.2%}"
        table.add_row(name, f"{row.size:,}", f"{row.size_bytes / 1000:,.0f}", unknown, f"{row.tokens_per_word:.2f}")
    return table
