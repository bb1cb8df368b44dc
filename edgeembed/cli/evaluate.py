"""`edgeembed evaluate`: score models side by side."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from edgeembed.cli.options import Command, documents_by_option, retrieval_option, sts_option
from edgeembed.cli.output import print_result


def _paths_option(name: str, metavar: str, text: str) -> Callable[[Command], Command]:
    return click.option(name, multiple=True, metavar=metavar, help=f"{text} Repeatable.")


@click.command()
@click.argument("models", metavar="MODEL|BUNDLE...", nargs=-1, required=True)
@click.option("--against", metavar="MODEL|BUNDLE", help="Reference model, usually the teacher.")
@sts_option
@retrieval_option
@documents_by_option
@_paths_option(
    "--semantic-retrieval",
    "DIR|FILE",
    "As --retrieval, searched with a faiss IVF index: MRR@10, time of 1,000 queries, memory.",
)
@click.option(
    "--nlist", default=1024, show_default=True, type=click.IntRange(min=1), help="Inverted lists of that index."
)
@click.option("--nprobe", default=5, show_default=True, type=click.IntRange(min=1), help="Lists searched per query.")
@_paths_option(
    "--entities",
    "FILE",
    "TSV of queries and the entities that they mean: query, entity, and optionally label (0 or 1) and language: R@1.",
)
@click.option(
    "--catalog",
    metavar="FILE",
    help="All entities, one per line, or a .tsv with a column entity.  [default: those in --entities]",
)
@_paths_option("--geometry", "FILE", "As --sts FILE: alignment and uniformity, for both of which lower is better.")
@click.option(
    "--positives-above",
    default=4.0,
    show_default=True,
    metavar="SCORE",
    help="Pairs of --geometry with a higher score are positive.",
)
@_paths_option(
    "--transfer",
    "DIR|FILE",
    "SentEval's tasks, by logistic regression on frozen embeddings: a folder with some of mr.tsv, cr.tsv, subj.tsv, "
    "mpqa.tsv, sst2_train.tsv, trec_train.tsv and mrpc_train.tsv. Or a TSV: label, and text or sentence1 and "
    "sentence2. NAME_train.tsv needs NAME_test.tsv beside it; NAME_dev.tsv is optional.",
)
@_paths_option(
    "--glue",
    "DIR",
    "GLUE's tasks, by logistic regression on frozen embeddings: a folder with cola_train.tsv and cola_dev.tsv, or "
    "those of sst2, mrpc, stsb, qnli and rte.",
)
@_paths_option(
    "--word-order",
    "TEXT",
    "Text, in any corpus format: whether embeddings distinguish its sentences from those with two words swapped.",
)
@_paths_option(
    "--cross-lingual-sts",
    "DIR[#PAIRS]",
    "Scored sentence pairs in several languages: a folder of LANGUAGE/test.tsv, whose rows are translations, or of "
    "files such as es-en.tsv. DIR#de-en,es-es selects language pairs.",
)
@_paths_option(
    "--cross-lingual-retrieval",
    "DIR[#PAIRS]",
    "One BEIR folder per language, with the same ids: queries of the first language, documents of the second.",
)
@_paths_option(
    "--bitext",
    "FILE[#COLUMNS]",
    "TSV of sentences and their translations: accuracy of the nearest neighbor, in both directions. Its first two "
    "columns, or FILE#column1,column2.",
)
@click.option(
    "--bitext-rows",
    default=1000,
    show_default=True,
    type=click.IntRange(min=2),
    help="Maximum number of rows of such a file, a random sample.",
)
@click.option(
    "--add-to",
    metavar="FILE",
    help="JSON of earlier scores on the same tasks, with the same --against: the models are added to it in the output.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the scores to a JSON file.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables as Markdown.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def command(
    models: tuple[str, ...], out: Path | None, markdown: Path | None, force: bool, as_json: bool, **options: Any
) -> None:
    """Score models or bundles, side by side.

    MODEL|BUNDLE is a built-in bundle (mini, nano, micro), a folder (./mini), an installed package that carries a model,
    or a hub id.

    The tables have the form of the papers': --sts with a folder SimTDE's (seven STS sets, their average, parameters),
    --semantic-retrieval HPD's, --entities SimTDE's, --geometry and --transfer DistilCSE's, --glue CMOW's,
    --cross-lingual-sts and --cross-lingual-retrieval Xayn's. The JSON is an object for one MODEL, a list for several.
    """
    from edgeembed.cli.options import Outputs
    from edgeembed.cli.progress import TerminalReporter
    from edgeembed.corpus.sources import split_columns
    from edgeembed.evaluation.evaluator import TASK_ARGUMENTS, evaluate

    paths = [*(path for name in TASK_ARGUMENTS for path in options[name]), *filter(None, [options["catalog"]])]
    inputs = [Path(split_columns(str(path))[0]) for path in paths]
    written = Outputs({"json": out, "markdown": markdown}, force=force, inputs=inputs)
    report = evaluate(models, reporter=TerminalReporter(), **options)
    written.write("json", report.to_json)
    written.write("markdown", report.to_markdown)
    if as_json:
        print_result(report, as_json=True)
        return

    from edgeembed_bench.render import terminal_tables
    from rich.console import Console

    Console().print(terminal_tables(report.tables))
