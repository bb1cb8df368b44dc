"""`edgeembed distill`: text and a teacher in, a student out."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from edgeembed.cli.options import (
    augmentation_overrides,
    back_translation_option,
    optional_corpus_option,
    pairs_option,
    wordnet_option,
)


@click.command()
@click.option("--recipe", default="compact", show_default=True, help="A recipe of ours by name, or a TOML file.")
@optional_corpus_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the student.")
@click.option("--teacher", help="The model to distil, in place of the recipe's.")
@wordnet_option
@back_translation_option
@click.option(
    "--parallel",
    multiple=True,
    metavar="FILE[#COLUMNS]",
    help="TSV of sentences and translations, or a folder of such: en-de.tsv with en and de; or sentence, translation, "
    "language; or FILE#column1,column2 of another. Repeatable.",
)
@pairs_option()
@click.option(
    "--scored",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TSV of scored sentence pairs to learn from: sentence1, sentence2, score. Repeatable.",
)
@click.option(
    "--dev",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TSV of scored sentence pairs; the checkpoint that does best on them is kept.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Folder for teacher vectors and checkpoints.  [default: OUT.cache]",
)
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint of the same run.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the recipe. Repeatable.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="Decides every draw.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    recipe: str,
    sources: tuple[str, ...],
    out: Path,
    teacher: str | None,
    parallel: tuple[str, ...],
    pairs: tuple[str, ...],
    scored: tuple[Path, ...],
    dev: Path | None,
    wordnet: str | None,
    back_translation: tuple[str, str] | None,
    cache: Path | None,
    resume: bool,
    overrides: tuple[str, ...],
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Distil a compact student from a teacher.

    From --corpus, --parallel, --pairs or --scored, as the recipe has it.
    """
    from edgeembed_runtime.storage.atomic import check_output_path

    from edgeembed.launching import refuse_several_processes
    from edgeembed.models import STUDENT_FOLDER, model_folder
    from edgeembed.recipe import load_recipe

    refuse_several_processes()

    named = [f"teacher={json.dumps(teacher)}"] if teacher else []
    settings = load_recipe(recipe, [*overrides, *named, *augmentation_overrides(wordnet, back_translation)])
    check_output_path(out, force=force, kind=STUDENT_FOLDER)
    # Reading a corpus can take minutes; what is wrong before shows now.
    settings.check_given(corpus=sources, parallel=parallel, pairs=pairs, scored=scored)
    model_folder(settings.teacher)

    from edgeembed.cli.progress import TerminalReporter, note
    from edgeembed.distillation import default_cache, distil, recipe_corpus, recipe_parallel, split_corpus

    corpus = recipe_corpus(settings, sources, seed) if sources else None
    sentences: list[str] = []
    if corpus is not None:
        note(f"corpus: {corpus.counts}")
        sentences, _ = split_corpus(settings, corpus.sentences, seed)
    translated = recipe_parallel(settings, parallel, seed)
    for counts in translated.languages if translated else ():
        note(str(counts))
    with _hint_of_resume(cache or default_cache(out)):
        report = distil(
            settings,
            sentences,
            out,
            parallel=translated,
            pairs=pairs,
            scored=scored,
            dev=dev,
            domains=corpus.domains if corpus else None,
            sources=sources,
            cache=cache,
            resume=resume,
            seed=seed,
            force=force,
            reporter=TerminalReporter(),
            command=["edgeembed", *sys.argv[1:]],
        )
    if as_json:
        click.echo(json.dumps(asdict(report), indent=2))
    else:
        click.echo(
            f"{report.student}: {report.parameters:,} parameters, {report.dimension} dimensions, "
            f"{report.vocabulary_size:,} tokens, distilled from {report.sentences:,} sentences"
        )
        for number, (loss, dev_spearman) in enumerate(
            zip(report.final_losses, report.dev_spearman, strict=True), start=1
        ):
            dev_score = "" if dev_spearman is None else f", Spearman {dev_spearman:.1f} (x100) on the development set"
            click.echo(f"stage {number}: loss {loss:.4f} at the end{dev_score}")
        if report.augmentation:
            click.echo(f"augmentation: {report.augmentation}")


@contextmanager
def _hint_of_resume(cache: Path) -> Iterator[None]:
    """Say on an interrupt (Ctrl-C or a signal) how to go on, if anything was kept."""
    from edgeembed.cli.progress import note
    from edgeembed.distillation import kept_work

    try:
        yield
    except Exception:
        raise
    except BaseException:
        kept = kept_work(cache)
        if kept:
            note(f"{cache} keeps {' and '.join(kept)}: the same command with --resume continues from there")
        raise
