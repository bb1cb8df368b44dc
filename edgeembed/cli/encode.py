"""`edgeembed encode`: text in, a store of embeddings out."""

from pathlib import Path

import click

from edgeembed.cli.options import SOURCE
from edgeembed.cli.output import print_result


@click.command()
@click.argument("sources", metavar="TEXT...", nargs=-1, required=True, type=SOURCE)
@click.option("--model", required=True, metavar="MODEL|BUNDLE", help="The model that encodes.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the embeddings.")
@click.option(
    "--engine",
    default="local",
    show_default=True,
    type=click.Choice(["local", "ray"]),
    help="Encode in this process, or on a Ray cluster.",
)
@click.option("--address", help="Address of a Ray cluster.  [default: start one on this machine]")
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Maximum number of copies of the model on the Ray cluster.  [default: one per GPU or, without GPUs, per core]",
)
@click.option(
    "--texts-per-shard", default=16_384, show_default=True, type=click.IntRange(1), help="Texts in a Parquet file."
)
@click.option("--normalize/--no-normalize", default=True, show_default=True, help="L2-normalize the embeddings.")
@click.option(
    "--prompt",
    help="Text to put before each text, such as 'query: '; '' for none.  [default: the model's prompt for documents]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    sources: tuple[Path, ...],
    model: str,
    out: Path,
    engine: str,
    address: str | None,
    workers: int | None,
    texts_per_shard: int,
    normalize: bool,
    prompt: str | None,
    as_json: bool,
) -> None:
    """Encode a corpus of any size into Parquet files of texts and embeddings.

    TEXT is a file, a folder, a URL such as s3://bucket/folder, - for stdin, or pydoc: for Python's documentation.
    Texts that the folder holds are not encoded again: repeat an interrupted command, or encode more text into it.
    `distill --teacher-embeddings` learns from the folder.
    """
    from edgeembed.cli.progress import TerminalReporter
    from edgeembed.embeddings.encode import encode

    report = encode(
        sources,
        model,
        out,
        engine=engine,  # type: ignore[arg-type]  # click has checked it
        address=address,
        workers=workers,
        texts_per_shard=texts_per_shard,
        normalize=normalize,
        prompt=prompt,
        reporter=TerminalReporter(),
    )
    print_result(report, as_json=as_json)
