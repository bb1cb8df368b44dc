"""`edgeembed bench`: measure the cost of models side by side."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgeembed.cli.options import retrieval_option, sts_option

if TYPE_CHECKING:
    from edgeembed_bench import BenchmarkReport, BenchmarkSettings, Budget, Preset
    from edgeembed_bench.paper_tables import PaperTable

    from edgeembed.cli.outputs import Outputs

_LIMIT = click.FloatRange(min=0)
# Equal to edgeembed.costs.PAPER_TABLES and edgeembed_bench.presets.PRESETS, which --help does not import.
_PAPER_TABLES = ("simtde", "hpd", "xayn", "cmow")
_PRESETS = ("runtime",)


@click.command()
@click.argument("models", metavar="SUBJECT...", nargs=-1)
@click.option(
    "--against",
    metavar="SUBJECT",
    multiple=True,
    help="Subject to compare with. The first one is the baseline; without it, the first SUBJECT is. Repeatable.",
)
@click.option(
    "--preset",
    type=click.Choice(_PRESETS),
    help="runtime: the built-in models, with limits on cold start, memory and call overhead. Exit with 1 if a whole "
    "95 % interval is above its limit; an interval that contains the limit does not fail.",
)
@click.option(
    "--peers",
    type=click.Path(path_type=Path),
    help="Folder of the preset's peers, built by `make bench-runtime`.  [default: build/bench-runtime]",
)
@click.option(
    "--texts",
    metavar="FILE",
    help="File of texts to encode, or - for stdin; any corpus format.  [default: sentences of Python's docstrings]",
)
@click.option("--runs", default=1000, show_default=True, type=click.IntRange(min=1), help="Timed texts per subject.")
@click.option(
    "--processes",
    default=10,
    show_default=True,
    type=click.IntRange(min=1),
    help="Fresh processes per subject; fewer than 8 allow no significance test.",
)
@click.option("--threads", default=1, show_default=True, type=click.IntRange(min=1), help="Threads per subject.")
@click.option(
    "--sweep/--no-sweep", default=None, help="Also time texts of 4 to 512 tokens.  [default: sweep, unless --preset]"
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Seed of the order in which subjects take turns.",
)
@sts_option
@retrieval_option
@click.option(
    "--unscored", metavar="NAME", multiple=True, help="Do not score this subject on --sts and --retrieval. Repeatable."
)
@click.option(
    "--max-latency-ratio",
    type=_LIMIT,
    help="Exit with 1 if the latency ratio of a SUBJECT to the baseline is higher, with its whole 95 % interval.",
)
@click.option("--max-mb", type=_LIMIT, help="Exit with 1 if a SUBJECT is larger, in 10^6 bytes.")
@click.option(
    "--min-quality",
    type=_LIMIT,
    help="Exit with 1 if the mean score of a SUBJECT is lower, in percent of the baseline's.",
)
@click.option("--paper-table", type=click.Choice(_PAPER_TABLES), help="Measure the cost table of this paper instead.")
@click.option("--table-batches", type=click.IntRange(min=1), help="Batches for --paper-table cmow.  [default: 1024]")
@click.option("--out", type=click.Path(path_type=Path), help="Write the report, with all samples, as JSON.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a self-contained page with plots.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables as Markdown.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter per option
    models: tuple[str, ...],
    against: tuple[str, ...],
    preset: str | None,
    peers: Path | None,
    texts: str | None,
    runs: int,
    processes: int,
    threads: int,
    sweep: bool | None,
    seed: int,
    sts: tuple[Path, ...],
    retrieval: tuple[Path, ...],
    unscored: tuple[str, ...],
    max_latency_ratio: float | None,
    max_mb: float | None,
    min_quality: float | None,
    paper_table: str | None,
    table_batches: int | None,
    out: Path | None,
    html: Path | None,
    markdown: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Measure the cost of models side by side.

    SUBJECT is [NAME=][KIND:]WHAT[@PYTHON]. WHAT is a bundle (built in: mini, nano; or a folder), a student, a
    sentence-transformer (a folder, a hub id, an installed package that carries one), a model2vec folder, or
    module:function, which takes texts and returns embeddings. KIND is detected, or is one of bundle,
    sentence-transformer, sentence-transformer-onnx, onnx, model2vec, fastembed, function. PYTHON is the interpreter of
    another environment, for packages that cannot be installed beside these.

    Each subject runs in fresh processes, on the same cores; subjects take turns in shuffled order.
    """
    from edgeembed_runtime.errors import CheckError, InputError

    from edgeembed.cli.outputs import Outputs

    if not models and preset is None:
        raise click.UsageError("Missing argument 'SUBJECT...': give one or more subjects, or --preset.")
    read = [file for file in (texts, *sts, *retrieval) if file is not None]
    written = Outputs({"json": out, "html": html, "markdown": markdown}, force=force, inputs=read)
    limits = (max_latency_ratio, max_mb, min_quality)
    if paper_table is not None and (html or markdown or preset or any(limit is not None for limit in limits)):
        raise InputError(
            "--paper-table measures the table of a paper; expected no --html, --markdown, --preset or limits with it"
        )
    if peers is not None and preset is None:
        raise InputError("--peers is the folder of a preset's peers; expected --preset with it")
    if min_quality is not None and not (sts or retrieval):
        raise InputError("--min-quality needs scores; expected --sts FILE or --retrieval DIR")
    if (max_latency_ratio is not None or min_quality is not None) and not against:
        raise InputError("the limit is relative to a baseline; expected --against SUBJECT")

    from edgeembed_bench import BenchmarkSettings, Budget, find_preset
    from edgeembed_bench.presets import PEERS_FOLDER

    from edgeembed import costs
    from edgeembed.cli.progress import TerminalReporter, note

    budget = Budget(*limits)
    given = costs.find_subjects([*models, *against])
    own, others = given[: len(models)], given[len(models) :]
    chosen: Preset | None = None
    settings = BenchmarkSettings(runs=runs)
    if preset is not None:
        chosen = find_preset(preset, runs=runs, peers=peers or PEERS_FOLDER)
        settings, budget = chosen.settings, _merge(chosen.budget, budget)
        own, others = [*chosen.subjects, *own], [*others, *chosen.peers]
    budget.check_sizes(own)
    costs.check_paper_table(paper_table, sts, retrieval)
    sentences = _sentences(texts)
    settings = _settings(settings, sweep, processes=processes, threads=threads, seed=seed)
    texts_from = {None: "Python's docstrings", "-": "stdin"}.get(texts, texts or "")
    subjects = [*own, *others]
    if paper_table is not None:
        table = costs.measure_paper_table(
            paper_table,
            subjects,
            sentences,
            settings,
            texts_from=texts_from,
            sts=sts,
            retrieval=retrieval,
            batches=table_batches,
        )
        written.write("json", table.to_json)
        _show_paper_table(table, as_json=as_json)
        return
    note(f"measuring {', '.join(subject.name for subject in subjects)}: {processes} processes each")
    report = costs.measure_costs(
        subjects,
        sentences,
        settings,
        texts_from=texts_from,
        baseline=others[0].name if against else None,
        floor=chosen.floor if chosen else None,
        left_out=chosen.left_out if chosen else None,
        sts=sts,
        retrieval=retrieval,
        unscored=unscored,
        reporter=TerminalReporter(),
    ).with_budget(budget, [subject.name for subject in own])
    _write(report, written)
    _show(report, as_json=as_json)
    failures = [failure for check in report.limit_checks() if (failure := check.failure) is not None]
    if failures:
        raise CheckError("over budget: " + "; ".join(failures))


def _settings(
    settings: "BenchmarkSettings", sweep: bool | None, *, processes: int, threads: int, seed: int
) -> "BenchmarkSettings":
    from edgeembed_bench import BenchmarkSettings

    if sweep is not None:
        settings = replace(settings, sweep_runs=BenchmarkSettings().sweep_runs if sweep else 0)
    return replace(settings, processes=processes, threads=threads, seed=seed)


def _merge(preset: "Budget", given: "Budget") -> "Budget":
    """Return the limits of a preset, replaced where the command line sets a limit."""
    return replace(preset, **{name: limit for name, limit in asdict(given).items() if limit is not None})


def _sentences(texts: str | None) -> list[str]:
    if texts is None:
        from edgeembed_bench.texts import docstring_sentences

        return docstring_sentences()
    from edgeembed.corpus import read_corpus

    return read_corpus([texts])


def _write(report: "BenchmarkReport", written: "Outputs") -> None:
    from edgeembed_bench import report_json
    from edgeembed_bench.render import html_report, markdown_report

    written.write("json", lambda: report_json(report))
    written.write("html", lambda: html_report(report))
    written.write("markdown", lambda: markdown_report(report))


def _show(report: "BenchmarkReport", *, as_json: bool) -> None:
    from edgeembed_bench import report_json
    from edgeembed_bench.render import terminal_report
    from rich.console import Console

    if as_json:
        click.echo(report_json(report))
    else:
        Console().print(terminal_report(report))


def _show_paper_table(table: "PaperTable", *, as_json: bool) -> None:
    from edgeembed_bench.render import terminal_paper_table
    from rich.console import Console

    if as_json:
        click.echo(table.to_json())
    else:
        Console().print(terminal_paper_table(table))
