"""`edgeembed bench`: models and bundles in, what each costs out."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgeembed.cli.options import retrieval_option, sts_option

if TYPE_CHECKING:
    from edgeembed_bench import BenchReport
    from edgeembed_bench.paper_tables import PaperTable

    from edgeembed.cli.outputs import Outputs

_LIMIT = click.FloatRange(min=0)
_FORMS = ("simtde", "hpd", "xayn", "cmow")  # as edgeembed.costs has them, which --help does not import


@click.command()
@click.argument("models", metavar="SUBJECT...", nargs=-1, required=True)
@click.option(
    "--against",
    metavar="SUBJECT",
    multiple=True,
    help="What to compare with; the first is the baseline, else the first SUBJECT. Repeatable.",
)
@click.option(
    "--texts",
    metavar="FILE",
    help="Text to encode, in any form that a corpus takes.  [default: sentences of Python's docstrings]",
)
@click.option("--runs", default=1000, show_default=True, type=click.IntRange(min=1), help="Timed texts a subject.")
@click.option(
    "--processes",
    default=10,
    show_default=True,
    type=click.IntRange(min=1),
    help="Fresh processes a subject; below 8 no difference is told from noise.",
)
@click.option("--threads", default=1, show_default=True, type=click.IntRange(min=1), help="Threads a subject.")
@click.option("--sweep/--no-sweep", default=True, show_default=True, help="Time texts of 4 to 512 tokens too.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Decides the order of turns.")
@sts_option
@retrieval_option
@click.option(
    "--unscored", metavar="NAME", multiple=True, help="Leave a SUBJECT out of --sts and --retrieval. Repeatable."
)
@click.option("--max-latency-ratio", type=_LIMIT, help="Leave with 1 if a SUBJECT takes longer, x the baseline.")
@click.option("--max-mb", type=_LIMIT, help="Leave with 1 if a SUBJECT is larger, in 10^6 bytes.")
@click.option("--min-quality", type=_LIMIT, help="Leave with 1 if a SUBJECT is worth less, % of the baseline.")
@click.option("--form", type=click.Choice(_FORMS), help="Fill in the cost table of a paper instead.")
@click.option("--form-batches", type=click.IntRange(min=1), help="Batches for the form cmow.  [default: 1024]")
@click.option("--out", type=click.Path(path_type=Path), help="Write the report, raw samples included, as JSON.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with plots, complete in one file.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables as Markdown.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    models: tuple[str, ...],
    against: tuple[str, ...],
    texts: str | None,
    runs: int,
    processes: int,
    threads: int,
    sweep: bool,
    seed: int,
    sts: tuple[Path, ...],
    retrieval: tuple[Path, ...],
    unscored: tuple[str, ...],
    max_latency_ratio: float | None,
    max_mb: float | None,
    min_quality: float | None,
    form: str | None,
    form_batches: int | None,
    out: Path | None,
    html: Path | None,
    markdown: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Measure what models cost, side by side.

    SUBJECT is [NAME=][KIND:]WHAT[@PYTHON]. WHAT is a bundle (built in: mini, nano; or a folder), a student, a
    sentence-transformer (a folder, a hub id, an installed package that carries one), a model2vec folder, or
    module:function, which takes texts and gives vectors. KIND is found by a look at it, or is one of bundle,
    sentence-transformer, sentence-transformer-onnx, onnx, model2vec, fastembed, function. PYTHON is the interpreter of
    another environment, for what does not install beside this one.

    Each subject runs in fresh processes of its own, on the same cores; subjects take turns in a shuffled order.
    """
    from edgeembed_runtime.errors import CheckError, InputError

    from edgeembed.cli.outputs import Outputs

    read = [file for file in (texts, *sts, *retrieval) if file is not None]
    written = Outputs({"json": out, "html": html, "markdown": markdown}, force=force, inputs=read)
    limits = (max_latency_ratio, max_mb, min_quality)
    if form is not None and (html or markdown or any(limit is not None for limit in limits)):
        raise InputError("--form gives a paper's table; expected no --html, --markdown or limits beside it")
    if min_quality is not None and not (sts or retrieval):
        raise InputError("--min-quality has nothing to be checked on; expected --sts FILE or --retrieval DIR")
    if (max_latency_ratio is not None or min_quality is not None) and not against:
        raise InputError("a limit is on what a SUBJECT costs or is worth beside another; expected --against SUBJECT")

    from edgeembed_bench import Budget, Plan

    from edgeembed import costs
    from edgeembed.cli.progress import TerminalReporter, note

    budget = Budget(*limits)
    subjects = costs.find_subjects([*models, *against])
    names = [subject.name for subject in subjects]
    budget.check_sizes(subjects[: len(models)])
    costs.check_form(form, sts, retrieval)
    sentences = _sentences(texts)
    plan = Plan(runs=runs, processes=processes, threads=threads, seed=seed)
    if not sweep:
        plan = replace(plan, sweep_runs=0)
    texts_from = {None: "Python's docstrings", "-": "stdin"}.get(texts, texts or "")
    if form is not None:
        filled = costs.fill_form(
            form, subjects, sentences, plan, texts_from=texts_from, sts=sts, retrieval=retrieval, batches=form_batches
        )
        written.write("json", filled.to_json)
        _show_form(filled, as_json=as_json)
        return
    note(f"measuring {', '.join(names)}: {processes} processes each, one after the other")
    report = costs.measure_costs(
        subjects,
        sentences,
        plan,
        texts_from=texts_from,
        baseline=names[len(models)] if against else None,
        sts=sts,
        retrieval=retrieval,
        unscored=unscored,
        reporter=TerminalReporter(),
    )
    _write(report, written)
    _show(report, as_json=as_json)
    failures = budget.failures(report, names[: len(models)])
    if failures:
        raise CheckError("over budget: " + "; ".join(failures))


def _sentences(texts: str | None) -> list[str]:
    if texts is None:
        from edgeembed_bench.texts import docstring_sentences

        return docstring_sentences()
    from edgeembed.corpus import read_corpus

    return read_corpus([texts])


def _write(report: "BenchReport", written: "Outputs") -> None:
    from edgeembed_bench import report_json
    from edgeembed_bench.render import html_report, markdown_report

    written.write("json", lambda: report_json(report))
    written.write("html", lambda: html_report(report))
    written.write("markdown", lambda: markdown_report(report))


def _show(report: "BenchReport", *, as_json: bool) -> None:
    from edgeembed_bench import report_json
    from edgeembed_bench.render import terminal_report
    from rich.console import Console

    if as_json:
        click.echo(report_json(report))
    else:
        Console().print(terminal_report(report))


def _show_form(filled: "PaperTable", *, as_json: bool) -> None:
    from edgeembed_bench.render import terminal_paper_table
    from rich.console import Console

    if as_json:
        click.echo(filled.to_json())
    else:
        Console().print(terminal_paper_table(filled))
