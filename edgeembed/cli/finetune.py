"""`edgeembed finetune`: an encoder and a task in, a classifier out."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("encoder")
@click.option(
    "--train", required=True, type=click.Path(path_type=Path), help="TSV: label or score; text, or two texts."
)
@click.option("--dev", required=True, type=click.Path(path_type=Path), help="The same, to choose weights and measure.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the classifier.")
@click.option("--teacher", metavar="FOLDER", help="A classifier of this task to learn from, ours or transformers'.")
@click.option(
    "--classifier",
    default="mlp",
    show_default=True,
    type=click.Choice(["linear", "mlp", "cnn", "bilstm"]),
    help="cnn and bilstm read matrix students.",
)
@click.option(
    "--encoding",
    default="diffcat",
    show_default=True,
    type=click.Choice(["diffcat", "joint"]),
    help="Two texts each by itself, or as one.",
)
@click.option(
    "--measure",
    type=click.Choice(["accuracy", "f1", "matthews", "accuracy-f1", "pearson-spearman"]),
    help="What weights are chosen by.  [default: accuracy, or pearson-spearman for scores]",
)
@click.option("--from-scratch", is_flag=True, help="Begin with random tables of ENCODER's shape, a matrix student's.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change how it learns, as epochs=5. Repeatable."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="Decides every draw.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(  # noqa: PLR0913  # one parameter an option
    encoder: str,
    train: Path,
    dev: Path,
    out: Path,
    teacher: str | None,
    classifier: str,
    encoding: str,
    measure: str | None,
    from_scratch: bool,
    overrides: tuple[str, ...],
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Train a classifier of texts, or of pairs of texts, and the encoder below it.

    ENCODER is a student's folder, or any other model with torch weights: a folder, an installed package that carries
    a model, or a hub id. With --teacher, half the loss is the teacher's.
    """
    from edgeembed_runtime.storage.atomic import check_output_path

    from edgeembed.launching import refuse_several_processes
    from edgeembed.recipe import setting
    from edgeembed.settings import build
    from edgeembed.tasks.examples import read_task
    from edgeembed.tasks.settings import TASK_FOLDER, TaskSettings

    refuse_several_processes()
    check_output_path(out, force=force, kind=TASK_FOLDER)
    chosen: dict[str, Any] = dict(map(setting, overrides))
    settings = build(TaskSettings, {"classifier": classifier, "encoding": encoding, "seed": seed, **chosen})
    task = read_task(train, dev)

    from edgeembed.cli.progress import TerminalReporter, note
    from edgeembed.hardware import default_device
    from edgeembed.models import load_model
    from edgeembed.students.cmow import afresh
    from edgeembed.tasks.teachers import teacher_logits
    from edgeembed.tasks.training import finetune
    from edgeembed.training import StepCallback

    device, reporter = default_device(), TerminalReporter()
    loaded = load_model(encoder, device=device)
    loaded = afresh(loaded, seed) if from_scratch else loaded
    logits = None
    if teacher is not None:
        with reporter.step("teacher", len(task.train.first)):
            logits = teacher_logits(teacher, task, device)
    by: Any = measure or ("pearson-spearman" if task.is_scored else "accuracy")
    with reporter.step("train", settings.epochs * -(-len(task.train.first) // settings.batch_size)) as advance:
        model, report = finetune(
            loaded, task, settings, measure=by, teacher=logits, device=device, callbacks=[StepCallback(advance)]
        )
    if report.warning:
        note(f"warning: {report.warning}")
    model.save(out, force=force)
    found = ", ".join(f"{name} {value:.1f}" for name, value in report.measures.items())
    click.echo(
        json.dumps({"out": str(out), **asdict(report)}, indent=2)
        if as_json
        else f"{out}: {found} (x100, on {len(task.dev.first):,} examples); {report.parameters:,} parameters"
    )
