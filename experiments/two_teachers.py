"""Distill a student that learns the embeddings of one teacher, and the mean of the similarities of two.

A stronger teacher thus teaches which texts are alike, while the student stays in the space of the first. Run with
`python -m experiments.two_teachers`; `experiments/wheel.sh teachers` runs it with all its options.
"""

import dataclasses
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt
from edgeembed_exporters.reduction.pca_head import Projection
from edgeembed_runtime.errors import EdgeEmbedError

import edgeembed
from edgeembed.cli.progress import TerminalReporter
from edgeembed.distillation.inputs import check_inputs
from edgeembed.distillation.pipeline import Prepared
from edgeembed.distillation.run import finish_run, prepare_run
from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.embeddings.text_vectors import TextVectors
from edgeembed.progress import TimedSteps


def mix(
    first: npt.NDArray[np.floating], second: npt.NDArray[np.floating], share: float
) -> tuple[npt.NDArray[np.float16], Projection]:
    """Return embeddings whose cosines are the mean of two teachers' cosines, and their projection to the first's.

    Args:
        first: Embeddings of the first teacher (texts, first_dim).
        second: Embeddings of the second teacher, of the same texts (texts, second_dim).
        share: Weight of the first teacher's cosines in the mean, above 0 and at most 1.

    Returns:
        float16 (texts, first_dim + second_dim), and the projection to `first`, normalized.
    """
    parts = [
        np.sqrt(weight) * vectors / np.linalg.norm(vectors.astype(np.float32), axis=1, keepdims=True)
        for weight, vectors in ((share, first), (1 - share, second))
    ]
    mixed = np.concatenate(parts, axis=1).astype(np.float16)
    width, kept = mixed.shape[1], first.shape[1]
    matrix = (np.eye(width, kept) / np.sqrt(share)).astype(np.float32)
    return mixed, Projection(np.zeros(width, np.float32), matrix, explained_variance=share)  # of the squared length


def with_second_teacher(prepared: Prepared, second: str, share: float, folder: Path, steps: TimedSteps) -> Prepared:
    """Return the same student, whose targets for similarities are the mean of two teachers' similarities.

    Args:
        prepared: The student, and what it learns from the first teacher.
        second: The second teacher: a model or a bundle.
        share: Weight of the first teacher's similarities.
        folder: Folder for the second teacher's embeddings and the mixed ones.
        steps: Times the steps.
    """
    if prepared.cached is None:
        raise ValueError("the recipe uses no embeddings of its teacher")
    sentences = prepared.text.sentences
    edgeembed.encode(list(sentences), second, folder / "second", reporter=steps.reporter)
    store = EmbeddingStore.open(folder / "second")
    mixed, projection = mix(prepared.cached.vectors, store.read(store.find_all(sentences)), share)
    file = folder / f"mixed-{share}.f16"
    mixed.tofile(file)
    cached = TextVectors(file, mixed.shape, store.encoder, 0)
    # The embeddings of two teachers are no space that the student could share.
    return dataclasses.replace(prepared, cached=cached, projection=projection, space=None)


@click.command()
@click.option("--corpus", required=True, help="As for edgeembed distill.")
@click.option("--teacher", required=True, help="The first teacher, which encoded --teacher-embeddings.")
@click.option("--teacher-embeddings", type=click.Path(path_type=Path), required=True)
@click.option("--second", required=True, help="The second teacher: a model or a bundle.")
@click.option("--share", type=click.FloatRange(0, 1, min_open=True), default=0.5, show_default=True)
@click.option("--set", "overrides", multiple=True, help="As for edgeembed distill. Repeatable.")
@click.option("--cache", type=click.Path(path_type=Path), required=True, help="Folder for embeddings and checkpoints.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the student.")
def command(
    corpus: str,
    teacher: str,
    teacher_embeddings: Path,
    second: str,
    share: float,
    overrides: tuple[str, ...],
    cache: Path,
    out: Path,
) -> None:
    """Distill a student by the recipe mini that learns the mean of two teachers' similarities."""
    steps = TimedSteps(TerminalReporter())
    try:
        inputs = check_inputs(
            "mini",
            corpus,
            out,
            teacher=teacher,
            parallel=(),
            pairs=(),
            scored=(),
            dev=None,
            overrides=overrides,
            cache=cache,
            teacher_embeddings=teacher_embeddings,
            resume=False,
            seed=0,
            force=False,
        )
        run = prepare_run(inputs, steps)
        prepared = with_second_teacher(run.prepared, second, share, cache, steps)
        report = finish_run(dataclasses.replace(run, prepared=prepared), steps, callbacks=(), report_to=(), command=())
    except EdgeEmbedError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{report.path}: {report.parameters:,} parameters, {report.dimension} dimensions")


if __name__ == "__main__":
    command()
