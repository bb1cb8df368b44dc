"""Measure how the choice of words changes BM25, on text that no results page reports.

    python -m experiments.bm25_words --train ../shared/data/train

Two collections: docstrings of installed packages without their first line, each query the first line of one; and
answers to medical questions (MedQuAD), each query a question. Prints the mean reciprocal rank of the right document.
"""

import argparse
import ast
import csv
import lzma
import random
import re
import sysconfig
import unicodedata
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
from edgeembed_runtime.index import bm25

_PACKAGES = ("numpy", "scipy", "sklearn", "torch", "matplotlib")
_QUERIES = 1_500
_MIN_CHARACTERS = 200
_FIRST_LINE = range(26, 200)

Pairs = list[tuple[str, str]]


def docstrings() -> Pairs:
    """Return the first line and the rest of docstrings; the rest begins with the name."""
    site = Path(sysconfig.get_path("purelib"))
    pairs = []
    for file in sorted(file for package in _PACKAGES for file in (site / package).rglob("*.py")):
        if {"tests", "test", "testing"}.isdisjoint(file.parts):
            module = ".".join(file.relative_to(site).with_suffix("").parts)
            for node in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                    docstring = ast.get_docstring(node) or ""
                    first, _, rest = docstring.partition("\n\n")
                    if len(docstring) >= _MIN_CHARACTERS and len(first) in _FIRST_LINE and rest:
                        pairs.append((first, f"{module}.{node.name}\n{rest}"))
    return pairs


def medical(folder: Path) -> Pairs:
    """Return questions and their answers, each answer once."""
    with lzma.open(folder / "pairs" / "medquad_qa.tsv.xz", "rt", encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(question, answer) for answer, question in {row["answer"]: row["question"] for row in rows}.items()]


def plain_words(text: str) -> list[str]:
    """Return runs of letters, digits and underscores in lower case."""
    return re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower())


def mean_reciprocal_rank(pairs: Pairs, words: Callable[[str], list[str]]) -> float:
    """Return the mean reciprocal rank of the right document for some of the queries."""
    with patch.object(bm25, "words", words):
        model = bm25.BM25(document for _, document in pairs)
        inverse = []
        for position in random.Random(0).sample(range(len(pairs)), _QUERIES):  # noqa: S311 - reproducible
            scores = model.scores(pairs[position][0])
            inverse.append(1 / (1 + int((scores > scores[position]).sum())) if scores[position] > 0 else 0)
    return float(np.mean(inverse))


def main() -> None:
    """Measure both collections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="the folder of training text")
    args = parser.parse_args()
    for name, pairs in (("docstrings", docstrings()), ("medical", medical(args.train))):
        for words in (plain_words, bm25.words):
            print(f"{name}, {len(pairs):,} documents, {words.__name__}: {mean_reciprocal_rank(pairs, words):.3f}")


if __name__ == "__main__":
    main()
