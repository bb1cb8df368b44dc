"""`edgeembed bench`: models and bundles in, what each costs out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from edgeembed_bench import Subject

_DOCSTRING_SENTENCES = 1000


@click.command()
@click.argument("models", metavar="MODEL|BUNDLE...", nargs=-1, required=True)
@click.option(
    "--against",
    metavar="MODEL|BUNDLE",
    multiple=True,
    help="What to compare with; the first is the baseline, else the first MODEL. Repeatable.",
)
@click.option(
    "--texts",
    metavar="FILE",
    help="Text to encode, in any form that a corpus takes.  [default: Python's docstrings]",
)
@click.option("--runs", default=1000, show_default=True, type=click.IntRange(min=1), help="Timed texts a model.")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(min=1), help="Threads a model.")
@click.option("--seed", default=0, show_default=True, help="Decides the order of turns.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the report, raw samples included, as JSON.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    models: tuple[str, ...],
    against: tuple[str, ...],
    texts: str | None,
    runs: int,
    threads: int,
    seed: int,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Measure what models cost, side by side."""
    from edgeembed_runtime.storage.writing import new_file, refuse_existing

    if out is not None:
        refuse_existing(out, force=force)

    from edgeembed_bench import bench, report_table

    sentences = _sentences(texts)
    subjects = _subjects([*models, *against])
    baseline = subjects[len(models)].name if against else None
    report = bench(subjects, sentences, runs=runs, threads=threads, seed=seed, baseline=baseline)
    if out is not None:
        with new_file(out, force=force) as file:
            file.write_text(report.to_json() + "\n", encoding="utf-8")
    if as_json:
        click.echo(report.to_json())
    else:
        from rich.console import Console

        Console().print(report_table(report))


def _sentences(texts: str | None) -> list[str]:
    from edgeembed.corpus import read_corpus

    return read_corpus([texts or "pydoc:"], limit=_DOCSTRING_SENTENCES if texts is None else None)


def _subjects(models: Sequence[str]) -> "list[Subject]":
    from edgeembed_bench import from_bundle, from_sentence_transformer

    from edgeembed.evaluation import is_bundle
    from edgeembed.models import load_model, model_folder

    subjects = []
    for model, name in zip(models, _names(models), strict=True):
        if is_bundle(model):
            subjects.append(from_bundle(Path(model), name))
        else:
            subjects.append(from_sentence_transformer(load_model(model), model_folder(model), name))
    return subjects


def _names(models: Sequence[str]) -> list[str]:
    """Name each by the last part of its path, or by all of it where two would be alike."""
    short = [Path(model).resolve().name for model in models]
    names = [name if short.count(name) == 1 else model for name, model in zip(short, models, strict=True)]
    return [
        name if names.count(name) == 1 else f"{name} ({names[:index].count(name) + 1})"
        for index, name in enumerate(names)
    ]
