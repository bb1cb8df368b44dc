"""`edgeembed distill`: text and a teacher in, a student out."""

import sys
from pathlib import Path

import click

from edgeembed.cli.options import (
    augmentation_overrides,
    back_translation_option,
    optional_corpus_option,
    pairs_option,
    wordnet_option,
)
from edgeembed.cli.output import print_result


@click.command()
@click.option("--recipe", default="compact", show_default=True, help="A recipe of ours by name, or a TOML file.")
@optional_corpus_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the student.")
@click.option("--teacher", help="The model to distill, in place of the recipe's.")
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
@click.option(
    "--teacher-embeddings",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder that `edgeembed encode` wrote with the teacher, which then encodes nothing.",
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
    sources: tuple[Path, ...],
    out: Path,
    teacher: str | None,
    parallel: tuple[str, ...],
    pairs: tuple[str, ...],
    scored: tuple[Path, ...],
    dev: Path | None,
    wordnet: str | None,
    back_translation: tuple[str, str] | None,
    cache: Path | None,
    teacher_embeddings: Path | None,
    resume: bool,
    overrides: tuple[str, ...],
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Distill a compact student from a teacher.

    The recipe decides what it learns from: --corpus, --parallel, --pairs or --scored.
    """
    from edgeembed.cli.progress import TerminalReporter
    from edgeembed.distillation import distill
    from edgeembed.processes import process_index

    report = distill(
        recipe,
        sources or None,
        out,
        teacher=teacher,
        parallel=parallel,
        pairs=pairs,
        scored=scored,
        dev=dev,
        overrides=[*overrides, *augmentation_overrides(wordnet, back_translation)],
        cache=cache,
        teacher_embeddings=teacher_embeddings,
        resume=resume,
        seed=seed,
        force=force,
        reporter=TerminalReporter(),
        command=["edgeembed", *sys.argv[1:]],
    )
    if process_index() == 0:
        print_result(report, as_json=as_json)
