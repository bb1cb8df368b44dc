"""`edgeembed augment`: write a corpus with variants of its sentences."""

from pathlib import Path

import click

from edgeembed.cli.options import back_translation_option, corpus_option, wordnet_option
from edgeembed.cli.output import print_result


@click.command()
@corpus_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Text file to write, one sentence a line.")
@wordnet_option
@back_translation_option
@click.option("--variants", default=1, show_default=True, help="Variants of each sentence by synonyms.")
@click.option("--only-new", is_flag=True, help="Write only the new sentences, without the originals.")
@click.option("--limit", type=int, help="Use a random sample of this many sentences.")
@click.option("--cache", type=click.Path(path_type=Path), help="Folder that keeps variants.  [default: OUT.cache]")
@click.option("--seed", default=0, show_default=True, help="Seed of the sample and of the substitutions.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    sources: tuple[Path, ...],
    out: Path,
    wordnet: str | None,
    back_translation: tuple[str, str] | None,
    variants: int,
    only_new: bool,
    limit: int | None,
    cache: Path | None,
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Augment English sentences: replace words by synonyms, translate the sentences there and back, or both.

    An interrupted run continues where it stopped when it is started again.
    """
    from edgeembed.augmentation import augment
    from edgeembed.cli.progress import TerminalReporter

    report = augment(
        sources,
        out,
        wordnet=wordnet,
        back_translation=back_translation,
        variants=variants,
        only_new=only_new,
        limit=limit,
        cache=cache,
        seed=seed,
        force=force,
        reporter=TerminalReporter(),
    )
    print_result(report, as_json=as_json)
