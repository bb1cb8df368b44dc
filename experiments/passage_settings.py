"""Measure how the length and the overlap of passages change the search of long documents.

    python -m experiments.passage_settings --train ../shared/data/train --out docs/results/passages.json

Two collections of 5,000-word documents, neither of them a test set: consecutive sentences of Wikipedia, each query a
sentence that was taken out of its document; and answers to medical questions (MedQuAD) one after the other, each query
a question. A document scores as its best passage.
"""

import argparse
import csv
import json
import lzma
import random
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from edgeembed_runtime import Encoder
from edgeembed_runtime.index.passages import PassageSettings, PassageSplitter
from edgeembed_runtime.similarity import normalize

_WORDS = 5_000
_DOCUMENTS = 40
_QUERIES_PER_DOCUMENT = 10
_SETTINGS: list[PassageSettings | None] = [
    None,
    *(PassageSettings(tokens, overlap) for tokens in (256, 128, 64) for overlap in (0, tokens // 8, tokens // 4)),
]


def wikipedia(folder: Path, rng: random.Random) -> tuple[list[str], list[tuple[str, int]]]:
    """Return documents of consecutive sentences, and held-out sentences with the positions of their documents."""
    documents: list[str] = []
    queries: list[tuple[str, int]] = []
    with lzma.open(folder / "en" / "wikipedia.txt.xz", "rt", encoding="utf-8") as lines:
        for sentences in _groups(line.strip() for line in lines):
            for _ in range(_QUERIES_PER_DOCUMENT):
                # Neither the first nor the last, and long enough to say something.
                chosen = rng.choice([i for i in range(1, len(sentences) - 1) if len(sentences[i].split()) >= 8])
                queries.append((sentences.pop(chosen), len(documents)))
            documents.append(" ".join(sentences))
    return documents, queries


def medical(folder: Path, rng: random.Random) -> tuple[list[str], list[tuple[str, int]]]:
    """Return documents of answers to medical questions, and questions with the positions of their documents."""
    with lzma.open(folder / "pairs" / "medquad_qa.tsv.xz", "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    answers = {row["answer"]: row["question"] for row in rows}
    shuffled = rng.sample(sorted(answers), len(answers))
    documents: list[str] = []
    queries: list[tuple[str, int]] = []
    for group in _groups(shuffled):
        queries += [(answers[answer], len(documents)) for answer in rng.sample(group, _QUERIES_PER_DOCUMENT)]
        documents.append("\n\n".join(group))
    return documents, queries


def _groups(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield consecutive texts in groups of about 5,000 words, as many as there shall be documents."""
    group: list[str] = []
    words = count = 0
    for text in texts:
        group.append(text)
        words += len(text.split())
        if words >= _WORDS:
            yield group
            group, words, count = [], 0, count + 1
            if count == _DOCUMENTS:
                return


def measure(
    encoder: Encoder, settings: PassageSettings | None, documents: list[str], queries: list[tuple[str, int]]
) -> dict[str, float]:
    """Return how often the right document is first, and the mean reciprocal rank; without settings, texts are cut."""
    texts, owners = [], []
    splitter = None if settings is None else PassageSplitter(encoder, settings)
    for position, document in enumerate(documents):
        spans = [(0, len(document))] if splitter is None else splitter.split(document)
        texts += [document[start:end] for start, end in spans]
        owners += [position] * len(spans)
    vectors = normalize(encoder.encode_document(texts, on_truncate="ignore"))
    first_rows = np.searchsorted(np.array(owners), np.arange(len(documents)))
    cosines = normalize(encoder.encode_query([query for query, _ in queries])) @ vectors.T
    scores = np.maximum.reduceat(cosines, first_rows, axis=1)
    right = scores[np.arange(len(queries)), [owner for _, owner in queries]]
    ranks = 1 + (scores > right[:, None]).sum(axis=1)
    return {
        "passages": len(texts),
        "first": float(np.mean(ranks == 1)),
        "mrr": float(np.mean(1 / ranks)),
    }


def main() -> None:
    """Measure all settings and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="the folder of training text")
    parser.add_argument("--encoder", action="append", help="a name or a bundle; may be repeated")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    args = parser.parse_args()
    makers = {"wikipedia": wikipedia, "medical": medical}
    sets = {name: make(args.train, random.Random(0)) for name, make in makers.items()}  # noqa: S311 - reproducible
    rows = []
    for name in args.encoder or ["mini"]:
        encoder = Encoder(name)
        for settings in _SETTINGS:
            for collection, (documents, queries) in sets.items():
                start = time.perf_counter()
                found = measure(encoder, settings, documents, queries)
                row = {
                    "encoder": encoder.bundle.name,
                    "collection": collection,
                    "max_tokens": settings and settings.max_tokens,
                    "overlap_tokens": settings and settings.overlap_tokens,
                    "documents": len(documents),
                    "queries": len(queries),
                    **found,
                }
                rows.append(row)
                print(json.dumps(row), f"{time.perf_counter() - start:.0f} s", flush=True)
    args.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
