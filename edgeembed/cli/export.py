"""The command `edgeembed export`."""

import re
import sys
from pathlib import Path

import click
from edgeembed_runtime.errors import EdgeEmbedError, InputError

from edgeembed.cli.output import print_result

# The options of the parameters that messages of `edgeembed.export` name. Names of one word read well as they are.
_OPTIONS = {
    "max_latency_ms": "--max-ms",
    "max_probability_difference": "--max-difference",
    "max_seq_length": "--max-length",
    "max_size_mb": "--max-mb",
    "min_cosine": "--min-cosine",
    "min_label_agreement": "--min-agreement",
    "min_original_cosine": "--min-original-cosine",
    "min_original_rank": "--min-original-rank",
    "min_overlap": "--min-overlap",
    "min_rank": "--min-rank",
    "near_cosine": "--near-cosine",
    "torch_weights": "--torch",
    "trim_size": "--trim-size",
    "trim_to": "--trim-to",
}
# Not an attribute, such as model.max_seq_length, and not what a model has none of.
_PARAMETER = re.compile(rf"(?<![\w.])(?<!has no )({'|'.join(_OPTIONS)})(?!\w)")


def _named_prompts(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    prompts = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not name or not equals:
            raise InputError(f"--prompt is {each}; expected NAME=TEXT, such as query='query: '")
        prompts[name] = text
    return prompts


@click.command()
@click.argument("model", metavar="MODEL")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the bundle.")
@click.option(
    "--precision",
    default="fp32",
    show_default=True,
    type=click.Choice(["fp32", "fp16", "int8", "int4", "auto"]),
    help="int8 has a quarter of the size and half the latency, int4 an eighth of the size; auto is the most precise "
    "one that keeps --max-mb and --max-ms.",
)
@click.option(
    "--trim-to",
    metavar="CORPUS",
    multiple=True,
    type=click.Path(path_type=Path),  # a path is always a source, never the text itself
    help="Keep only the tokens that this text needs: a file, a folder, - for stdin, or pydoc:. Repeatable.",
)
@click.option("--trim-size", type=int, help="Keep at most this many tokens, the most frequent ones.")
@click.option(
    "--vocabulary",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Keep the tokens of this tokenizer.json, which `edgeembed vocab --trim` made from MODEL's.",
)
@click.option("--dim", type=int, help="Reduce embeddings to this many dimensions by a PCA of the text in --fit.")
@click.option(
    "--fit",
    metavar="CORPUS",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Text to fit the PCA on. Repeatable.",
)
@click.option("--whiten", is_flag=True, help="Scale all new dimensions to the same variance.")
@click.option(
    "--role",
    default="both",
    show_default=True,
    type=click.Choice(["semantic", "relevance", "both"]),
    help="Use of the encoder: semantic reads 128 tokens, with MODEL's prompt for documents before all texts; relevance "
    "and both read as many tokens as MODEL, with its prompts for queries and documents.",
)
@click.option(
    "--max-length", type=int, metavar="TOKENS", help="Maximum number of tokens to read, instead of the role's."
)
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="NAME=TEXT",
    callback=_named_prompts,
    help="Put TEXT before queries, documents, or texts of any other prompt NAME, instead of MODEL's. Repeatable.",
)
@click.option(
    "--min-cosine",
    type=float,
    help="Minimum cosine of any sentence to MODEL after it was trimmed or reduced.  "
    "[default: 0.9999 for fp32, 0.999 for fp16, 0.99 for int8, 0.85 for int4]",
)
@click.option(
    "--min-rank",
    type=float,
    help="Minimum rank correlation (Spearman) between the cosines of all pairs of sentences by MODEL, after it was "
    "trimmed or reduced, and by the bundle.  [default: 0.99 for fp32 and fp16, 0.95 for int8, 0.85 for int4]",
)
@click.option(
    "--min-overlap",
    type=float,
    help="Minimum share of a sentence's ten nearest sentences that the bundle keeps, on average.  "
    "[default: 0.95 for fp32 and fp16, 0.8 for int8, 0.6 for int4]",
)
@click.option(
    "--min-original-cosine",
    type=float,
    help="Minimum cosine of any sentence to MODEL before --trim-to or --vocabulary. Not with --dim: embeddings of "
    "different dimensions have no cosine.",
)
@click.option(
    "--min-original-rank",
    type=float,
    help="Minimum rank correlation (Spearman) between the cosines of all pairs of sentences by MODEL, before "
    "--trim-to, --vocabulary or --dim, and by the bundle.",
)
@click.option(
    "--min-agreement",
    type=float,
    help="For a classifier: minimum share of texts with the same label.  "
    "[default: 0.99 for fp32, 0.98 for fp16, 0.9 for int8, 0.75 for int4]",
)
@click.option(
    "--max-difference",
    type=float,
    help="For a classifier: maximum difference of a probability.  "
    "[default: 0.01 for fp32, 0.05 for fp16, 0.5 for int8, 1 for int4]",
)
@click.option("--max-mb", type=float, help="Maximum size of the bundle in megabytes, --ort and --torch included.")
@click.option("--max-ms", type=float, help="Maximum milliseconds per text on this machine, on one thread.")
@click.option(
    "--sentences",
    metavar="FILE",
    help="Text to compare bundle and MODEL on.  [default: --trim-to, --fit, or 280 sentences in edgeembed]",
)
@click.option(
    "--exporter",
    default="torch",
    show_default=True,
    type=click.Choice(["torch", "optimum"]),
    help="Library that traces the encoder; optimum needs edgeembed[optimum].",
)
@click.option(
    "--backend",
    default="onnx",
    show_default=True,
    type=click.Choice(["onnx", "numpy"]),
    help="Engine of the bundle; numpy is for students without attention and static embeddings.",
)
@click.option("--ort", is_flag=True, help="Also write the model in ONNX Runtime's format for phones.")
@click.option("--torch", "torch_weights", is_flag=True, help="Also write the torch weights, as large as MODEL's.")
@click.option("--name", help="Name of the encoder.  [default: the folder's name]")
@click.option("--license", "license_name", help="License of the weights, such as apache-2.0.  [default: MODEL's card]")
@click.option(
    "--language", "languages", multiple=True, help="Language code for the card. Repeatable.  [default: MODEL's card]"
)
@click.option("--quality", metavar="FILE", type=click.Path(path_type=Path), help="Scores for the card, a JSON object.")
@click.option("--latency", metavar="FILE", type=click.Path(path_type=Path), help="Times for the card, a JSON object.")
@click.option(
    "--near-cosine",
    type=float,
    help="Minimum cosine at which the runtime's interests take two texts for one topic.  "
    "[default: what 2 % of the pairs of --sentences reach]",
)
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter per option
    model: str,
    out: Path,
    precision: str,
    trim_to: tuple[Path, ...],
    trim_size: int | None,
    vocabulary: Path | None,
    dim: int | None,
    fit: tuple[Path, ...],
    whiten: bool,
    role: str,
    max_length: int | None,
    prompts: dict[str, str],
    min_cosine: float | None,
    min_rank: float | None,
    min_overlap: float | None,
    min_original_cosine: float | None,
    min_original_rank: float | None,
    min_agreement: float | None,
    max_difference: float | None,
    max_mb: float | None,
    max_ms: float | None,
    sentences: str | None,
    exporter: str,
    backend: str,
    ort: bool,
    torch_weights: bool,
    name: str | None,
    license_name: str | None,
    languages: tuple[str, ...],
    quality: Path | None,
    latency: Path | None,
    near_cosine: float | None,
    force: bool,
    as_json: bool,
) -> None:
    """Export a MODEL as a bundle, unless the bundle misses a limit.

    MODEL is a folder, an installed package that carries a model, or a hub id.
    """
    from edgeembed_exporters import GateError
    from edgeembed_exporters.gate import worst_lines

    from edgeembed.cli.progress import TerminalReporter, note
    from edgeembed.exporting import export

    try:
        report = export(
            model,
            out,
            precision=precision,  # type: ignore[arg-type]  # click checked the choice
            trim_to=trim_to or None,
            trim_size=trim_size,
            vocabulary=vocabulary,
            dim=dim,
            fit=fit or None,
            whiten=whiten,
            role=role,  # type: ignore[arg-type]
            max_seq_length=max_length,
            prompts=prompts,
            min_cosine=min_cosine,
            min_rank=min_rank,
            min_overlap=min_overlap,
            min_original_cosine=min_original_cosine,
            min_original_rank=min_original_rank,
            min_label_agreement=min_agreement,
            max_probability_difference=max_difference,
            max_size_mb=max_mb,
            max_latency_ms=max_ms,
            sentences=sentences,
            tracer=exporter,  # type: ignore[arg-type]
            backend=backend,  # type: ignore[arg-type]
            ort=ort,
            torch_weights=torch_weights,
            name=name,
            license=license_name,
            languages=languages,
            quality=quality,
            latency=latency,
            near_cosine=near_cosine,
            force=force,
            reporter=TerminalReporter(),
            command=sys.argv[1:],
        )
    except EdgeEmbedError as error:
        if isinstance(error, GateError) and error.parity:
            for line in worst_lines(error.parity):
                note(line)
        error.args = (_PARAMETER.sub(lambda found: _OPTIONS[found[0]], str(error)), *error.args[1:])
        raise
    print_result(report, as_json=as_json)
