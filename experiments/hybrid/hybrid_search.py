"""Compare search by embeddings, by keywords (BM25) and by both (hybrid).

    python -m experiments.hybrid.hybrid_search docstrings --out build/docstrings-mini.json
    python -m experiments.hybrid.hybrid_search ../shared/data/eval/retrieval/scifact --out build/scifact-mini.json

The collection is a folder in the BEIR layout, or `docstrings`: the docstrings of Python's standard library with the
questions of docstring_questions.toml. Take Python 3.11, for which the questions were written.
"""

import argparse
import ast
import json
import math
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime import Encoder, Hit, Index, PassageSettings
from edgeembed_runtime.index.engine import SEARCH_METHODS

from edgeembed.evaluation import read_retrieval

_QUESTIONS = Path(__file__).with_name("docstring_questions.toml")
_NOT_SEARCHED = {"test", "tests", "idlelib", "lib2to3", "turtledemo", "ensurepip", "site-packages", "__pycache__"}
_TOP_K = 100


@dataclass(frozen=True)
class Collection:
    """Documents, queries and judgments.

    Attributes:
        documents: The text of each document, by id.
        queries: The text of each query, by id.
        relevant: The ids of the relevant documents, by query id.
    """

    documents: dict[str, str]
    queries: dict[str, str]
    relevant: dict[str, set[str]]


def docstring_collection(*, with_names: bool) -> Collection:
    """Return the public docstrings of the standard library, and the questions about it."""
    folder = Path(sysconfig.get_path("stdlib"))
    documents: dict[str, str] = {}
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder).with_suffix("").parts
        if _NOT_SEARCHED.isdisjoint(parts) and not parts[0].startswith("config-"):
            module = ".".join(parts).removesuffix(".__init__")
            for name, docstring in _docstrings(ast.parse(file.read_bytes()), module):
                if not any(part.startswith("_") for part in name.split(".")):
                    documents.setdefault(name, f"{name}\n{docstring}" if with_names else docstring)
    questions = tomllib.loads(_QUESTIONS.read_text(encoding="utf-8"))["question"]
    queries = {str(number): question["text"] for number, question in enumerate(questions)}
    relevant = {str(number): set(question["answers"]) for number, question in enumerate(questions)}
    if unknown := set().union(*relevant.values()) - documents.keys():
        sys.exit(f"this Python has no docstring of {', '.join(sorted(unknown))}; run the script with Python 3.11")
    return Collection(documents, queries, relevant)


def _docstrings(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    """Yield the qualified name and the docstring of a module, class or function, and of what it defines."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        docstring = ast.get_docstring(node)
        if docstring:
            yield name, docstring
        if not isinstance(node, ast.Module | ast.ClassDef):
            return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstrings(child, f"{name}.{child.name}")
        elif isinstance(child, ast.If | ast.Try):  # definitions that depend on the platform
            yield from _docstrings(child, name)


def scores(collection: Collection, results: dict[str, list[Hit]]) -> dict[str, object]:
    """Return nDCG@10 and recall@100, binary relevance, and how many queries have an answer first or in the top ten."""
    ranks = {
        query: [rank for rank, hit in enumerate(hits, 1) if hit.id in collection.relevant[query]]
        for query, hits in results.items()
    }
    count = len(ranks)
    return {
        "ndcg@10": sum(_ndcg(ranks[query], len(collection.relevant[query])) for query in ranks) / count,
        "recall@100": sum(len(found) / len(collection.relevant[query]) for query, found in ranks.items()) / count,
        "first": sum(found[:1] == [1] for found in ranks.values()),
        "top_10": sum(bool(found) and found[0] <= 10 for found in ranks.values()),
        "best_ranks": [found[0] if found else None for found in ranks.values()] if count < 50 else None,
    }


def _ndcg(ranks: list[int], relevant: int) -> float:
    gain = sum(1 / math.log2(1 + rank) for rank in ranks if rank <= 10)
    return gain / sum(1 / math.log2(1 + rank) for rank in range(1, min(relevant, 10) + 1))


def measure(
    name: str, collection: Collection, encoder: Encoder, passages: PassageSettings | None
) -> list[dict[str, object]]:
    """Return the scores of each method."""
    documents = collection.documents
    index = Index.build(encoder, documents.values(), ids=documents, passages=passages)
    rows = []
    for method in SEARCH_METHODS:
        hits = index.search(list(collection.queries.values()), _TOP_K, method=method)
        results = dict(zip(collection.queries, hits, strict=True))
        rows.append(
            {
                "collection": name,
                "documents": len(documents),
                "queries": len(collection.queries),
                "encoder": encoder.bundle.name,
                "passages": passages is not None,
                "method": method,
                **scores(collection, results),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Measure and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", help="docstrings, or a folder in the BEIR layout")
    parser.add_argument("--encoder", default="mini", help="a name or a bundle (default: mini)")
    parser.add_argument("--without-names", action="store_true", help="docstrings without the qualified names")
    parser.add_argument("--cut", action="store_true", help="cut long documents instead of splitting them")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    args = parser.parse_args()
    if args.collection == "docstrings":
        collection = docstring_collection(with_names=not args.without_names)
        name = "docstrings without names" if args.without_names else "docstrings"
    else:
        task = read_retrieval(Path(args.collection))
        collection, name = Collection(task.documents, task.queries, task.relevant), task.name
    rows = measure(name, collection, Encoder(args.encoder), None if args.cut else PassageSettings())
    args.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
