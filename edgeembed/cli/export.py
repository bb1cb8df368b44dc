"""`edgeembed export`: a model in, a bundle out, unless it would not be faithful."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import BUNDLE_FOLDER
from edgeembed_runtime.storage.atomic import check_output_path

if TYPE_CHECKING:
    from edgeembed_exporters import ExportReport, OriginalParity

# Enough that the worst of them tells, and read by both models in well under a minute.
_PARITY_SENTENCES = 400


def _named_prompts(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    prompts = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not name or not equals:
            raise InputError(f"--prompt {each} names no prompt; expected NAME=TEXT, such as query='query: '")
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
    help="int8 takes a quarter of the space and half the time, int4 an eighth; auto is the most faithful within "
    "--max-mb and --max-ms.",
)
@click.option(
    "--trim-to",
    metavar="CORPUS",
    multiple=True,
    help="Keep only the tokens that this text needs: a file, a folder, - for stdin, or pydoc:. Repeatable.",
)
@click.option("--trim-size", type=int, help="Keep at most this many tokens, the most used.")
@click.option(
    "--vocabulary",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Keep the tokens of this tokenizer.json, cut from MODEL's by `edgeembed vocab --trim`.",
)
@click.option("--dim", type=int, help="Reduce vectors to this many dimensions, by a PCA of the text in --fit.")
@click.option("--fit", metavar="CORPUS", multiple=True, help="Text to fit the dimensions on. Repeatable.")
@click.option("--whiten", is_flag=True, help="Give all of the new dimensions the same variance.")
@click.option(
    "--role",
    default="both",
    show_default=True,
    type=click.Choice(["semantic", "relevance", "both"]),
    help="What the encoder is for: semantic reads 128 tokens, and puts MODEL's prompt for documents before all texts; "
    "relevance and both read as much as MODEL, and have its prompts for queries and documents.",
)
@click.option("--max-length", type=int, metavar="TOKENS", help="Read so much of a text, in place of the role's own.")
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="NAME=TEXT",
    callback=_named_prompts,
    help="Put TEXT before each query, document, or what else NAME says, in place of MODEL's own. Repeatable.",
)
@click.option(
    "--min-cosine",
    type=float,
    help="Least cosine of any sentence to MODEL after it was trimmed or reduced.  "
    "[default: 0.9999 for fp32, 0.999 for fp16, 0.99 for int8, 0.85 for int4]",
)
@click.option(
    "--min-original-cosine",
    type=float,
    help="Least cosine of any sentence to MODEL before --trim-to or --vocabulary. Not with --dim: vectors of different "
    "dimensions have no cosine.",
)
@click.option(
    "--min-original-rank",
    type=float,
    help="Least rank correlation (Spearman) between the cosines of all pairs of sentences by MODEL, before --trim-to, "
    "--vocabulary or --dim, and by the bundle.",
)
@click.option("--max-mb", type=float, help="Most megabytes that the bundle may have, --ort and --torch included.")
@click.option("--max-ms", type=float, help="Most milliseconds that one text may take here, on one thread.")
@click.option(
    "--sentences",
    metavar="FILE",
    help="Text to compare on, in any form that a corpus takes.  [default: --trim-to, --fit, or 280 sentences of ours]",
)
@click.option(
    "--exporter",
    default="torch",
    show_default=True,
    type=click.Choice(["torch", "optimum"]),
    help="What traces the encoder; optimum comes with edgeembed[optimum].",
)
@click.option(
    "--backend",
    default="onnx",
    show_default=True,
    type=click.Choice(["onnx", "numpy"]),
    help="What runs the bundle; numpy alone can run students without attention and StaticEmbeddings.",
)
@click.option("--ort", is_flag=True, help="Write the model in ONNX Runtime's format for phones as well.")
@click.option("--torch", "torch_weights", is_flag=True, help="Write the torch weights as well, as large as MODEL's.")
@click.option("--name", help="What the encoder is called.  [default: the folder's name]")
@click.option("--license", "license_name", help="License of the weights, such as apache-2.0.  [default: MODEL's card]")
@click.option(
    "--language", "languages", multiple=True, help="Language code for the card. Repeatable.  [default: MODEL's card]"
)
@click.option("--quality", metavar="FILE", type=click.Path(path_type=Path), help="Scores for the card, a JSON object.")
@click.option("--latency", metavar="FILE", type=click.Path(path_type=Path), help="Times for the card, a JSON object.")
@click.option(
    "--near-cosine",
    type=float,
    help="Cosine from which the runtime's interests take two texts for one topic.  [default: 0.4]",
)
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    model: str,
    out: Path,
    precision: str,
    trim_to: tuple[str, ...],
    trim_size: int | None,
    vocabulary: Path | None,
    dim: int | None,
    fit: tuple[str, ...],
    whiten: bool,
    role: str,
    max_length: int | None,
    prompts: dict[str, str],
    min_cosine: float | None,
    min_original_cosine: float | None,
    min_original_rank: float | None,
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
    """Turn a model into a bundle, behind a parity gate.

    MODEL is a folder, an installed package that carries a model, or a hub id.
    """
    check_output_path(out, force=force, kind=BUNDLE_FOLDER)
    scores, times = _read_object(quality, "scores"), _read_object(latency, "times")

    from edgeembed.cli.progress import TerminalReporter, note
    from edgeembed.corpus import read_corpus
    from edgeembed.models import bundle_provenance, load_model, student_scores
    from edgeembed.tailoring import Tailoring, summary, tailor

    tailoring = Tailoring(vocabulary, trim_to, trim_size, dim, fit, whiten)
    tailoring.check()
    reporter = TerminalReporter()
    with reporter.step("load"):
        loaded = load_model(model)
    loaded.prompts = {**loaded.prompts, **prompts}  # before the vocabulary is cut, which keeps what they need

    from edgeembed_exporters import GateError, export, take_apart
    from edgeembed_exporters.gate import worst_lines

    take_apart(loaded)  # what cannot be exported is refused before the text is gathered
    with reporter.step("sentences"):
        given = [sentences] if sentences else [*(trim_to or fit)]
        texts = read_corpus(given, limit=_PARITY_SENTENCES) if given else None
    original = loaded
    with reporter.step("tailor"):
        loaded, cuts = tailor(loaded, tailoring)
    try:
        with reporter.step("export"):
            report = export(
                loaded,
                out,
                sentences=texts,
                precision=precision,  # type: ignore[arg-type]  # click checked the choice
                role=role,  # type: ignore[arg-type]
                max_seq_length=max_length,
                prompts=prompts,
                exporter=exporter,  # type: ignore[arg-type]
                backend=backend,  # type: ignore[arg-type]
                torch_weights=torch_weights,
                ort=ort,
                min_cosine=min_cosine,
                original=None if loaded is original else original,
                min_original_cosine=min_original_cosine,
                min_original_rank=min_original_rank,
                max_size_mb=max_mb,
                max_latency_ms=max_ms,
                name=name,
                provenance=bundle_provenance(model, sys.argv[1:], license_name=license_name, languages=languages),
                quality=scores or student_scores(model),
                latency=times,
                near_cosine=near_cosine,
                reduction=cuts or None,
                force=force,
            )
    except GateError as error:
        for line in worst_lines(error.parity) if error.parity else []:
            note(line)
        raise
    click.echo(_as_json(report, cuts) if as_json else "\n".join([*summary(cuts), _as_text(report)]))


def _read_object(path: Path | None, of: str) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}; give an object of {of}") from error
    if not isinstance(given, dict):
        raise InputError(f"{path} holds a {type(given).__name__}; expected a JSON object of {of}")
    return given


def _as_json(report: "ExportReport", cuts: dict[str, Any]) -> str:
    return json.dumps({**asdict(report), "bundle": str(report.bundle), "reduction": cuts}, indent=2, ensure_ascii=False)


def _as_text(report: "ExportReport") -> str:
    parity = report.parity
    lines = [
        (
            f"{report.bundle}: {report.size_bytes / 1e6:.2f} MB, {report.parameters:,} parameters, "
            f"{report.dimension} dimensions, {report.precision}"
        ),
        (
            f"cosine to the model over {parity.sentences:,} sentences: "
            f"worst {parity.min_cosine:.5f}, mean {parity.mean_cosine:.5f}"
        ),
    ]
    if report.original_parity:
        lines.append(f"before it was trimmed or reduced: {_original_figures(report.original_parity)}")
    return "\n".join(lines)


def _original_figures(parity: "OriginalParity") -> str:
    figures = []
    if parity.min_cosine is not None:
        figures.append(f"cosine worst {parity.min_cosine:.5f}, mean {parity.mean_cosine:.5f}")
    if parity.spearman is not None:
        figures.append(f"rank correlation of all pairs {parity.spearman:.5f}")
    if parity.top_10_overlap is not None:
        figures.append(f"{parity.top_10_overlap:.1%} of the ten nearest stay")
    return ", ".join(figures) or "too few sentences to tell"
