"""`edgeembed evaluate`: models or bundles and labelled files in, scores out."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgeembed.cli.options import retrieval_option, sts_option

if TYPE_CHECKING:
    from edgeembed.evaluation import Evaluation


@click.command()
@click.argument("models", metavar="MODEL|BUNDLE...", nargs=-1, required=True)
@click.option("--against", metavar="MODEL|BUNDLE", help="A reference, usually the teacher.")
@sts_option
@retrieval_option
@click.option(
    "--semantic-retrieval",
    multiple=True,
    metavar="DIR|FILE",
    type=click.Path(path_type=Path),
    help="What --retrieval takes, searched by a faiss IVF index: MRR@10, time of 1,000 queries, memory. Repeatable.",
)
@click.option("--nlist", default=1024, show_default=True, type=click.IntRange(min=1), help="Lists of that index.")
@click.option("--nprobe", default=5, show_default=True, type=click.IntRange(min=1), help="Lists searched for a query.")
@click.option(
    "--entities",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TSV of queries and the entities they mean: query, entity, and label (0 or 1) and language if wanted. "
    "Repeatable.",
)
@click.option(
    "--catalogue",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="All entities, one a line, or a .tsv with a column entity.  [default: those in --entities]",
)
@click.option(
    "--geometry",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What --sts FILE takes: alignment and uniformity, for both of which lower is better. Repeatable.",
)
@click.option(
    "--positives-above",
    default=4.0,
    show_default=True,
    metavar="SCORE",
    help="Pairs of --geometry that are scored higher are positive.",
)
@click.option(
    "--transfer",
    multiple=True,
    metavar="DIR|FILE",
    type=click.Path(path_type=Path),
    help="SentEval's tasks, by logistic regression on frozen vectors: a folder of mr.tsv, cr.tsv, subj.tsv, mpqa.tsv, "
    "sst2_train.tsv, trec_train.tsv, mrpc_train.tsv, those that it has. Or a TSV: label, and text or sentence1 and "
    "sentence2. Beside NAME_train.tsv stand NAME_test.tsv and NAME_dev.tsv if there is one. Repeatable.",
)
@click.option(
    "--glue",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="GLUE's tasks, by logistic regression on frozen vectors: a folder of cola_train.tsv and cola_dev.tsv, "
    "and those of sst2, mrpc, stsb, qnli and rte that it has. Repeatable.",
)
@click.option(
    "--word-order",
    multiple=True,
    metavar="TEXT",
    help="Text, in any form that a corpus takes: whether vectors tell its sentences from the same words in another "
    "order. Repeatable.",
)
@click.option(
    "--cross-lingual-sts",
    multiple=True,
    metavar="DIR[#PAIRS]",
    help="Scored sentence pairs in languages: a folder of LANGUAGE/test.tsv, whose rows are translations, or of "
    "es-en.tsv and its like. DIR#de-en,es-es chooses pairs of languages. Repeatable.",
)
@click.option(
    "--cross-lingual-retrieval",
    multiple=True,
    metavar="DIR[#PAIRS]",
    help="A BEIR folder a language, the same ids in all: queries of the first language, documents of the second. "
    "Repeatable.",
)
@click.option(
    "--bitext",
    multiple=True,
    metavar="FILE[#COLUMNS]",
    help="TSV of sentences and their translations: is the nearest neighbour the translation, both ways? Its first two "
    "columns, or FILE#column1,column2. Repeatable.",
)
@click.option(
    "--bitext-rows",
    default=1000,
    show_default=True,
    type=click.IntRange(min=2),
    help="The most rows to take of such a file, a random sample.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the scores to a JSON file.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables as Markdown.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    models: tuple[str, ...],
    against: str | None,
    sts: tuple[Path, ...],
    retrieval: tuple[Path, ...],
    semantic_retrieval: tuple[Path, ...],
    nlist: int,
    nprobe: int,
    entities: tuple[Path, ...],
    catalogue: Path | None,
    geometry: tuple[Path, ...],
    positives_above: float,
    transfer: tuple[Path, ...],
    glue: tuple[Path, ...],
    word_order: tuple[str, ...],
    cross_lingual_sts: tuple[str, ...],
    cross_lingual_retrieval: tuple[str, ...],
    bitext: tuple[str, ...],
    bitext_rows: int,
    out: Path | None,
    markdown: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Score models or bundles, side by side.

    MODEL|BUNDLE is a built-in bundle (mini, nano), a folder (./mini), an installed package that carries a model, or a
    hub id.

    With --sts and a folder the table is the papers': seven similarity sets, their average, parameters; with
    --semantic-retrieval it is HPD's, with --entities SimTDE's, with --geometry and --transfer DistilCSE's, with --glue
    CMOW's, with --cross-lingual-sts and --cross-lingual-retrieval Xayn's. JSON holds an object for one MODEL, a list
    for several.
    """
    from edgeembed_runtime.errors import InputError

    from edgeembed.cli.outputs import Outputs
    from edgeembed.corpus.sources import split_columns

    chosen_from = [split_columns(each)[0] for each in (*cross_lingual_sts, *cross_lingual_retrieval, *bitext)]
    labelled = [*sts, *retrieval, *semantic_retrieval, *entities, *geometry, *transfer, *glue]
    tasks = [*map(str, labelled), *word_order, *map(str, chosen_from)]
    if not tasks:
        raise InputError(
            "nothing to evaluate on; expected --sts FILE, --retrieval DIR, --semantic-retrieval DIR, "
            "--entities FILE, --geometry FILE, --transfer DIR, --glue DIR, --word-order TEXT, --cross-lingual-sts DIR, "
            "--cross-lingual-retrieval DIR or --bitext FILE, as often as wanted"
        )
    if catalogue is not None and not entities:
        raise InputError("--catalogue has no queries; expected --entities FILE beside it")
    read = [*tasks, *([] if catalogue is None else [str(catalogue)])]
    written = Outputs({"json": out, "markdown": markdown}, force=force, inputs=read)

    from edgeembed.cli.progress import TerminalReporter
    from edgeembed.evaluation import ListSettings, TaskPaths, evaluate_models, evaluation_markdown

    paths = TaskPaths(
        sts,
        retrieval,
        semantic_retrieval,
        entities,
        catalogue,
        ListSettings(nlist, nprobe),
        geometry=geometry,
        positives_above=positives_above,
        transfer=transfer,
        glue=glue,
        word_order=word_order,
        cross_lingual_sts=cross_lingual_sts,
        cross_lingual_retrieval=cross_lingual_retrieval,
        bitext=bitext,
        bitext_rows=bitext_rows,
    )
    evaluations = evaluate_models(models, paths, against=against, reporter=TerminalReporter())
    found: list[dict[str, Any]] = [each.as_dict() for each in evaluations]
    text = json.dumps(found[0] if len(found) == 1 else found, indent=2, ensure_ascii=False)
    written.write("json", lambda: text)
    written.write("markdown", lambda: evaluation_markdown(evaluations))
    _show(evaluations, text if as_json else None)


def _show(evaluations: "tuple[Evaluation, ...]", text: str | None) -> None:
    if text is not None:
        click.echo(text)
        return
    from edgeembed_bench.render import terminal_tables
    from rich.console import Console

    from edgeembed.evaluation import evaluation_tables

    Console().print(terminal_tables(evaluation_tables(evaluations)))
