"""Measure and tabulate the bundles of the page docs/results/export.md.

    python -m experiments.export.measure COMMAND ...

`available` runs a command of edgeembed on those of the bundles that the gate did not refuse; `ort-int8` writes what
onnxruntime's own dynamic quantization makes of the teacher; `whole` compares the teacher's bundles with it on every
sentence, alone and in padded batches; `table` prints what was found; `processors` verifies bundles on emulated older
processors (with qemu-user).
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import click
import numpy as np
from edgeembed_bench.render.markdown import markdown_table
from edgeembed_bench.render.tables import Table

from edgeembed.corpus import read_corpus
from edgeembed.models import load_model, load_tokenizer
from experiments.parameters import arguments, lookup, merge, read_parameters
from experiments.run import run_command

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_BATCH = 32


@click.group(help=__doc__)
def main() -> None:
    """Measure."""


def bundle_folders(folder: Path) -> list[Path]:
    """Return the bundles below a folder that were not refused, in the order of their names."""
    return [report.parent / report.parent.name for report in sorted(folder.glob("*/report.json"))]


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("pipeline", type=_FOLDER)
@click.argument("command")
@click.argument("name")
@click.argument("bundles", type=_FOLDER)
@click.argument("prefix")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def available(  # one parameter an argument
    pipeline: Path, command: str, name: str, bundles: Path, prefix: str, options: tuple[str, ...]
) -> None:
    """Run COMMAND with the options NAME on the bundles whose names start with one of PREFIX,PREFIX."""
    parameters = read_parameters(pipeline)
    found = [str(each) for each in bundle_folders(bundles) if each.name.startswith(tuple(prefix.split(",")))]
    chosen = merge(lookup(parameters, name), {"arguments": found})
    run_command([command, *arguments(chosen, parameters), *options])


@main.command()
@click.argument("teacher")
@click.argument("bundle", type=_FOLDER)
@click.argument("out", type=click.Path(path_type=Path))
def ort_int8(teacher: str, bundle: Path, out: Path) -> None:
    """Quantize the teacher as torch exports it, and our fused graph, as onnxruntime does, optimized as at loading.

    Both are put into bundles, so that the runtime runs them as it runs the others.
    """
    import edgeembed_runtime  # noqa: F401  # turns onnxruntime's telemetry off
    import onnx
    import onnxruntime
    from edgeembed_exporters.bundle.manifest import update_file_record
    from edgeembed_exporters.model_spec import inspect_model
    from edgeembed_exporters.onnx.tracing import build_graph, trace
    from onnxruntime.quantization import quantize_dynamic

    source = inspect_model(load_model(teacher))
    fused = onnx.load(bundle / "onnx" / "model.onnx")
    graphs = {"teacher-ort-int8-fused": fused, "teacher-ort-int8": trace(build_graph(source), source.max_seq_length)}
    for name, graph in graphs.items():
        folder = Path(shutil.copytree(bundle, out / name / name))
        model = folder / "onnx" / "model.onnx"
        onnx.save(graph, model)
        quantize_dynamic(model, model, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(model)
        onnxruntime.InferenceSession(model.read_bytes(), options)
        update_file_record(folder, "onnx/model.onnx")


@main.command()
@click.argument("teacher")
@click.argument("text")
@click.argument("bundles", nargs=-1, required=True, type=_FOLDER)
@click.option("--out", required=True, type=click.Path(path_type=Path))
def whole(teacher: str, text: str, bundles: tuple[Path, ...], out: Path) -> None:
    """Compare bundles with the teacher on every sentence of a text."""
    from edgeembed_exporters.gate import compare

    model, texts, found = load_model(teacher), read_corpus([text]), {}
    for folder in bundles:
        parity = compare(model, folder, texts)
        found[folder.name] = {
            "sentences": parity.sentences,
            "worst": parity.min_cosine,
            "percentile": parity.p01_cosine,
            "mean": parity.mean_cosine,
            "rank": parity.spearman,
            "alone_to_padded": _alone_to_padded(teacher, folder, texts),
        }
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _alone_to_padded(teacher: str, folder: Path, texts: list[str]) -> float:
    """Return the lowest cosine of a text's embedding alone to the one in a padded batch."""
    import onnxruntime
    from edgeembed_runtime import Bundle, Encoder

    tokenizer = load_tokenizer(teacher)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # as the runtime has it
    session = onnxruntime.InferenceSession(folder / Bundle.open(folder).model_file, options)
    alone, farthest = Encoder.load(folder).encode(texts), 1.0
    for start in range(0, len(texts), _BATCH):
        batch = tokenizer.encode_batch(texts[start : start + _BATCH])
        feeds = {"input_ids": [row.ids for row in batch], "attention_mask": [row.attention_mask for row in batch]}
        padded = session.run(["sentence_embedding"], {key: np.array(rows, np.int64) for key, rows in feeds.items()})[0]
        farthest = min(farthest, float((padded * alone[start : start + _BATCH]).sum(axis=1).min()))
    return farthest


@main.command()
@click.argument("bundles", type=_FOLDER)
@click.argument("quality", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path))
def table(bundles: Path, quality: Path, out: Path) -> None:
    """Write the table of the bundles' sizes, parity and scores."""
    reports = json.loads(quality.read_text(encoding="utf-8"))
    scores = {Path(each["model"]).name: [score["value"] for score in each["scores"]] for each in reports}
    rows = tuple(_row(folder, scores.get(folder.name, ())) for folder in bundle_folders(bundles))
    columns = ("bundle", "model MB", "bundle MB", "worst", "1st percentile", "mean", "rank", "top 10", "dev", "test")
    out.write_text(markdown_table(Table("", columns, rows, "")) + "\n", encoding="utf-8")


def _row(folder: Path, scores: Iterable[float]) -> tuple[str, ...]:
    found = json.loads((folder.parent / "report.json").read_text(encoding="utf-8"))
    model = folder / json.loads((folder / "edgeembed.json").read_text(encoding="utf-8"))["model_file"]
    parity = found["parity"]
    cosines = (f"{parity[key]:.5f}" for key in ("worst_cosine", "first_percentile_cosine", "mean_cosine"))
    sizes = (f"{model.stat().st_size / 1e6:.2f}", f"{found['size_bytes'] / 1e6:.2f}")
    ranks = (f"{parity['rank_correlation']:.4f}", f"{parity['top_10_overlap']:.3f}")
    return (folder.name, *sizes, *cosines, *ranks, *([f"{each:.1f}" for each in scores] or ["-", "-"]))


@main.command()
@click.argument("pipeline", type=_FOLDER)
@click.argument("bundles", type=_FOLDER)
@click.option("--out", required=True, type=click.File("w", encoding="utf-8"))
def processors(pipeline: Path, bundles: Path, out: TextIO) -> None:
    """Verify bundles on emulated processors."""
    for case in lookup(read_parameters(pipeline), "processors"):
        processor, _, name = case.partition("/")
        emulated = ["qemu-x86_64-static", "-cpu", processor, sys.executable, "-m", "edgeembed_runtime", "verify"]
        command = [*emulated, str(bundles / name / name)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own command
        out.write(f"== {case}\n{found.stdout}")


if __name__ == "__main__":
    main()
