"""`edgeembed vocab`: text in, a tokenizer and an account of what it covers out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgeembed.cli.options import labelled_corpus_option

if TYPE_CHECKING:
    from rich.table import Table
    from tokenizers import Tokenizer

    from edgeembed.corpus import CorpusCounts, LanguageSample
    from edgeembed.vocabulary import Coverage, LanguageReport

_SMOOTHING = 0.7


@click.command()
@labelled_corpus_option
@click.option("--size", type=int, required=True, help="Tokens in the vocabulary, special ones included.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The tokenizer.json to write.")
@click.option(
    "--smoothing",
    type=float,
    metavar="EXPONENT",
    help=f"Of the languages' shares: 1 leaves them, 0 makes them equal.  [default: {_SMOOTHING}]",
)
@click.option("--trim", metavar="MODEL", help="Cut the vocabulary from this model's, in place of training one.")
@click.option("--cased/--uncased", default=None, help="Keep case, or fold it.  [default: kept with languages]")
@click.option("--keep-accents/--fold-accents", default=None, help="[default: kept with --cased and with languages]")
@click.option("--report/--no-report", default=True, show_default=True, help="Tell what the vocabulary covers.")
@click.option("--against", metavar="MODEL", multiple=True, help="Report on this model's vocabulary too. Repeatable.")
@click.option(
    "--limit", type=int, help="Use a random sample of this many sentences.  [default: with languages 1,000,000]"
)
@click.option("--seed", default=0, show_default=True, help="Decides every draw.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    sources: tuple[str, ...],
    size: int,
    out: Path,
    smoothing: float | None,
    trim: str | None,
    cased: bool | None,
    keep_accents: bool | None,
    report: bool,
    against: tuple[str, ...],
    limit: int | None,
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Train a vocabulary on text, or trim a model's to it, and tell what it covers.

    One sentence in ten, 2,000 at the most, is kept out of the vocabulary's making; the report is measured on
    those. With languages (--corpus de=FILE) a sample of the text is used, in which each has its share of all,
    exponentiated by --smoothing and renormalised, and the report tells of each.
    """
    from edgeembed_runtime.errors import InputError
    from edgeembed_runtime.storage.atomic import atomic_file, check_output_path

    check_output_path(out, force=force)

    from edgeembed.cli.progress import TerminalReporter, note
    from edgeembed.corpus import label_languages
    from edgeembed.models import load_tokenizer
    from edgeembed.vocabulary import measure_coverage, report_languages, trim_vocabulary

    languages = label_languages(sources)
    if smoothing is not None and not languages:
        raise InputError("--smoothing has no languages; expected a label before every source, such as --corpus en=FILE")
    if trim is not None and not (cased is None and keep_accents is None):
        raise InputError("--trim keeps case and accents as the model has them; expected no option of either beside it")
    peers = {name: load_tokenizer(name) for name in dict.fromkeys([*([trim] if trim else []), *against])}
    progress = TerminalReporter()
    with progress.step("corpus"):
        if languages:
            text = _sample(languages, _SMOOTHING if smoothing is None else smoothing, limit, seed)
        else:
            text = _gather(sources, limit, seed)
    note(f"corpus: {text.counts}")
    with progress.step("vocabulary"):
        tokenizer = (
            _train(text, size, cased=cased, keep_accents=keep_accents)
            if trim is None
            else trim_vocabulary(peers[trim], text.training, size)
        )
    with atomic_file(out, force=force) as path:
        path.write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    coverage: dict[str, Coverage] = {}
    reports: tuple[LanguageReport, ...] = ()
    if report:
        with progress.step("report"):
            tokenizers = {str(out): tokenizer, **peers}
            held_out = text.held_out or text.training
            coverage = {name: measure_coverage(peer, held_out) for name, peer in tokenizers.items()}
            reports = report_languages(text.languages, tokenizers)
    _show(_Made(out, tokenizer.get_vocab_size(), text.counts, coverage, reports), as_json=as_json)


@dataclass(frozen=True)
class _Text:
    training: list[str]
    held_out: list[str]
    counts: "CorpusCounts"
    languages: "tuple[LanguageSample, ...]" = ()


def _gather(sources: Sequence[str], limit: int | None, seed: int) -> _Text:
    from edgeembed.corpus import gather_corpus, held_out_count, split_holdout
    from edgeembed.corpus.languages import MOST_HELD_OUT

    corpus = gather_corpus(sources, limit=limit, seed=seed)
    count = held_out_count(len(corpus.sentences), MOST_HELD_OUT)
    return _Text(*split_holdout(corpus.sentences, count, seed), corpus.counts)


def _sample(languages: dict[str, list[str]], smoothing: float, limit: int | None, seed: int) -> _Text:
    from edgeembed.corpus import sample_languages
    from edgeembed.corpus.languages import SAMPLE_SIZE

    size = SAMPLE_SIZE if limit is None else limit
    corpus = sample_languages(languages, smoothing=smoothing, size=size, seed=seed)
    training = [text for sample in corpus.languages for text in sample.training]
    held_out = [text for sample in corpus.languages for text in sample.held_out]
    return _Text(training, held_out, corpus.counts, corpus.languages)


def _train(text: _Text, size: int, *, cased: bool | None, keep_accents: bool | None) -> "Tokenizer":
    from edgeembed.vocabulary import train_multilingual_vocabulary, train_vocabulary

    keep_case = bool(text.languages) if cased is None else cased
    keep = (keep_case or bool(text.languages)) if keep_accents is None else keep_accents
    strip_accents = None if keep == keep_case else not keep  # BERT's rule is that accents go with case
    if text.languages:
        samples = [sample.training for sample in text.languages]
        return train_multilingual_vocabulary(samples, size, lowercase=not keep_case, strip_accents=strip_accents)
    return train_vocabulary(text.training, size, lowercase=not keep_case, strip_accents=strip_accents)


@dataclass(frozen=True)
class _Made:
    out: Path
    size: int
    counts: "CorpusCounts"
    coverage: "dict[str, Coverage]"
    reports: "tuple[LanguageReport, ...]"

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "out": str(self.out),
            "size": self.size,
            "corpus": self.counts.to_dict(),
            "coverage": {name: row.to_dict() for name, row in self.coverage.items()},
        }
        return found | ({"languages": [each.to_dict() for each in self.reports]} if self.reports else {})


def _show(made: _Made, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(made.to_dict(), indent=2))
        return
    click.echo(f"{made.out}: {made.size:,} tokens")
    if made.coverage:
        from rich.console import Console

        Console().print(coverage_table(made.coverage))
        if made.reports:
            Console().print(_languages_table(made.reports), _words_table(made.reports))


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
        table.add_row(name, f"{row.size:,}", f"{row.size_bytes / 1000:,.0f}", *_figures(row))
    return table


def _figures(row: "Coverage") -> tuple[str, str]:
    return "none" if row.unknown_rate is None else f"{row.unknown_rate:.2%}", f"{row.tokens_per_word:.2f}"


def _languages_table(reports: "tuple[LanguageReport, ...]") -> "Table":
    from rich.table import Table

    table = Table(
        title="languages: share of the text and of the sample; what is held out of each", title_justify="left"
    )
    table.add_column("language")
    for name in ("text", "sample"):
        table.add_column(name, justify="right")
    table.add_column("vocabulary", overflow="fold")
    for name in ("unknown", "tokens a word"):
        table.add_column(name, justify="right")
    for report in reports:
        shares = (f"{report.sample.text_share:.1%}", f"{report.sample.sample_share:.1%}")
        for name, row in report.coverage.items():
            table.add_row(report.sample.language, *shares, name, *_figures(row))
    return table


def _words_table(reports: "tuple[LanguageReport, ...]") -> "Table":
    from rich.table import Table

    from edgeembed.vocabulary.words import CURVE_SIZES

    curves = [(each.sample.language, name, curve) for each in reports for name, curve in each.whole_words.items()]
    sizes = [size for size in CURVE_SIZES if any(size < max(curve) for _, _, curve in curves)]
    table = Table(title="words that are one token of the first N", title_justify="left")
    table.add_column("language")
    table.add_column("vocabulary", overflow="fold")
    for title in (*(f"{size:,}" for size in sizes), "all"):
        table.add_column(title, justify="right")
    for language, name, curve in curves:
        points = [f"{curve[size]:.1%}" if size in curve else "-" for size in sizes]
        table.add_row(language, name, *points, f"{curve[max(curve)]:.1%}")
    return table
