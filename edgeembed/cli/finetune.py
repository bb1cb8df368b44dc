"""`edgeembed finetune`: train a text classifier."""

from pathlib import Path
from typing import Any

import click

from edgeembed.cli.output import print_result


@click.command()
@click.argument("encoder")
@click.option(
    "--train",
    required=True,
    type=click.Path(path_type=Path),
    help="Training split, TSV: a column label or score; a column text, or two columns of texts.",
)
@click.option(
    "--dev", required=True, type=click.Path(path_type=Path), help="Development split, to select the best epoch."
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the classifier.")
@click.option(
    "--teacher", metavar="MODEL", help="A classifier of this task to distill from: a folder of ours, or transformers'."
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Folder for the teacher's predictions, which several runs may share.  [default: none]",
)
@click.option(
    "--classifier",
    default="mlp",
    show_default=True,
    type=click.Choice(["linear", "mlp", "cnn", "bilstm"]),
    help="Classification head; cnn and bilstm are for CMOW students.",
)
@click.option(
    "--encoding",
    default="joint",
    show_default=True,
    type=click.Choice(["joint", "diffcat"]),
    help="Encode the two texts of a pair as one sequence, or separately, which cannot be exported.",
)
@click.option(
    "--metric",
    type=click.Choice(["accuracy", "f1", "matthews", "accuracy-f1", "pearson-spearman"]),
    help="Metric that selects the best epoch.  [default: accuracy, or pearson-spearman for scores]",
)
@click.option(
    "--score-range",
    nargs=2,
    type=float,
    metavar="LOW HIGH",
    help="Lowest and highest bin of scores; 1 5 gives STS-B's 21 bins of the CMOW paper.  [default: those of the data]",
)
@click.option("--from-scratch", is_flag=True, help="Start from random weights; ENCODER is a CMOW student.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a training setting, such as epochs=5. Repeatable.",
)
@click.option(
    "--report-to",
    multiple=True,
    metavar="NAME",
    help="Log to tensorboard (into OUT.logs), wandb or another integration. Repeatable.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="Random seed.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(encoder: str, train: Path, dev: Path, out: Path, as_json: bool, **options: Any) -> None:
    """Train a classifier of texts, or of pairs of texts, and the encoder below it.

    ENCODER is a student's folder, or any other model with torch weights: a folder, an installed package that carries
    a model, or a hub id. With --teacher, half the loss is the cross-entropy with the teacher's predictions.
    """
    from edgeembed.classification.finetuning import finetune
    from edgeembed.cli.progress import TerminalReporter

    report = finetune(encoder, train, dev, out, reporter=TerminalReporter(), **options)
    print_result(report, as_json=as_json)
