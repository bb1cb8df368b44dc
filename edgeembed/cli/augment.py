"""`edgeembed augment`: text in, the text and variants of it out."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgeembed.cli.options import back_translation_option, corpus_option, wordnet_option

if TYPE_CHECKING:
    from edgeembed.augmentation import AugmentationReport


@click.command()
@corpus_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Text file to write, one sentence a line.")
@wordnet_option
@back_translation_option
@click.option("--variants", default=1, show_default=True, help="Variants of each sentence that synonyms make.")
@click.option("--only-new", is_flag=True, help="Write the new sentences without those that there were.")
@click.option("--limit", type=int, help="Use a random sample of this many sentences.")
@click.option("--cache", type=click.Path(path_type=Path), help="Folder for what was made so far.  [default: OUT.cache]")
@click.option("--seed", default=0, show_default=True, help="Decides every draw.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    sources: tuple[str, ...],
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
    """Make more English sentences of those that there are: with synonyms, by translating them there and back, or both.

    An interrupted run goes on where it stopped when it is started again.
    """
    from edgeembed_runtime.errors import InputError

    from edgeembed.cli.outputs import Outputs
    from edgeembed.recipe_settings import AugmentationSettings

    there, back = back_translation or ("", "")
    settings = AugmentationSettings(wordnet=wordnet or "", variants=variants, there=there, back=back)
    if not settings.is_wanted:
        raise InputError("nothing to make sentences with was given; expected --wordnet, --back-translation or both")
    outputs = Outputs({"text": out}, force=force, inputs=sources)

    from edgeembed.augmentation import augment
    from edgeembed.cli.progress import TerminalReporter, note
    from edgeembed.corpus import gather_corpus

    corpus = gather_corpus(sources, limit=limit, seed=seed)
    note(f"corpus: {corpus.counts}")
    cache = cache or out.with_name(f"{out.name}.cache")
    augmented = augment(corpus.sentences, settings, cache, seed=seed, reporter=TerminalReporter())
    chosen = augmented.sentences[augmented.report.originals if only_new else 0 :]
    outputs.write("text", lambda: "\n".join(chosen))
    if as_json:
        counts = corpus.counts.to_dict()
        click.echo(json.dumps({"out": str(out), "corpus": counts, **augmented.report.to_dict()}, indent=2))
    else:
        _show(out, len(chosen), augmented.report)


def _show(out: Path, written: int, report: "AugmentationReport") -> None:
    click.echo(f"{out}: {written:,} sentences; {report}")
    for method in report.methods:
        per_sentence = f", {method.substituted_words} words a sentence" if method.substituted_words else ""
        click.echo(
            f"\n{method.method.replace('_', '-')}: {method.made:,} made{per_sentence}; "
            f"{method.unchanged:,} unchanged and {method.duplicates:,} duplicate ones dropped; "
            f"{method.reused_sentences:,} sentences found in the cache; {method.seconds:.1f} s"
        )
        for sample in method.samples:
            click.echo(f"  {sample.original}\n  -> {sample.variant}")
