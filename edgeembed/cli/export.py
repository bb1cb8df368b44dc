"""`edgeembed export`: a model in, a bundle out, unless it would not be faithful."""

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import MANIFEST
from edgeembed_runtime.storage.writing import refuse_existing

if TYPE_CHECKING:
    from edgeembed_exporters import ExportReport, Provenance

# Enough that the worst of them tells, and read by both models in well under a minute.
_PARITY_SENTENCES = 400


@click.command()
@click.argument("model", metavar="MODEL")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the bundle.")
@click.option(
    "--precision",
    default="fp32",
    show_default=True,
    type=click.Choice(["fp32", "int8"]),
    help="int8 takes a quarter of the space and half the time.",
)
@click.option(
    "--role",
    default="semantic",
    show_default=True,
    type=click.Choice(["semantic", "relevance"]),
    help="What the encoder is for.",
)
@click.option(
    "--min-cosine",
    type=float,
    help="Least cosine to MODEL of any sentence.  [default: 0.9999 for fp32, 0.99 for int8]",
)
@click.option("--max-mb", type=float, help="Most megabytes that the bundle may have.")
@click.option(
    "--sentences",
    metavar="FILE",
    help="Text to compare on, in any form that a corpus takes.  [default: Python's docstrings]",
)
@click.option("--name", help="What the encoder is called.  [default: the folder's name]")
@click.option("--quality", metavar="FILE", type=click.Path(path_type=Path), help="Scores for the card, a JSON object.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    model: str,
    out: Path,
    precision: str,
    role: str,
    min_cosine: float | None,
    max_mb: float | None,
    sentences: str | None,
    name: str | None,
    quality: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Turn a model into an ONNX bundle, behind a parity gate.

    MODEL is a folder, an installed package that carries a model, or a hub id.
    """
    refuse_existing(out, force=force, marker=MANIFEST)
    scores = _read_scores(quality)

    from edgeembed.cli.progress import TerminalReporter
    from edgeembed.corpus import read_corpus
    from edgeembed.models import load_model

    reporter = TerminalReporter()
    with reporter.step("load"):
        loaded = load_model(model)

    from edgeembed_exporters import export, take_apart

    take_apart(loaded)  # what cannot be exported is refused before the text is gathered
    with reporter.step("sentences"):
        texts = read_corpus([sentences or "pydoc:"], limit=_PARITY_SENTENCES)
    with reporter.step("export"):
        report = export(
            loaded,
            out,
            sentences=texts,
            precision=precision,  # type: ignore[arg-type]  # click checked the choice
            role=role,  # type: ignore[arg-type]
            min_cosine=min_cosine,
            max_size_mb=max_mb,
            name=name,
            provenance=_provenance(model),
            quality=scores,
            force=force,
        )
    click.echo(_as_json(report) if as_json else _as_text(report))


def _read_scores(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        scores = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}; give an object of scores") from error
    if not isinstance(scores, dict):
        raise InputError(f"{path} holds a {type(scores).__name__}; expected a JSON object of scores")
    return scores


def _provenance(model: str) -> "Provenance":
    from edgeembed_exporters import Provenance

    from edgeembed.models import model_folder, provenance

    known = provenance(model_folder(model))
    return Provenance(
        teacher=known.get("teacher"),
        recipe=known.get("recipe"),
        licences=tuple(known.get("licences", ())),
        command=" && ".join(command for command in (known.get("command"), _typed()) if command),
    )


def _typed() -> str:
    return shlex.join(["edgeembed", *sys.argv[1:]])


def _as_json(report: "ExportReport") -> str:
    return json.dumps({**asdict(report), "bundle": str(report.bundle)}, indent=2, ensure_ascii=False)


def _as_text(report: "ExportReport") -> str:
    parity = report.parity
    return (
        f"{report.bundle}: {report.size_bytes / 1e6:.2f} MB, {report.parameters:,} parameters, "
        f"{report.dimension} dimensions, {report.precision}\n"
        f"cosine to the model over {parity.sentences:,} sentences: "
        f"worst {parity.worst_cosine:.5f}, mean {parity.mean_cosine:.5f}"
    )
