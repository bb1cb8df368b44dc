"""Measure the peak memory of building, extending and searching an index, each in a fresh process.

python experiments/index_memory.py [--documents N] [--precision int8] > docs/results/index-memory.json

The embeddings are random and have the dimension of the encoder "nano", 256. The peak is `ru_maxrss` of the whole
process, with Python, the libraries, the encoder and the embeddings.
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from edgeembed_runtime import Encoder, Index
from edgeembed_runtime.index.engine import INDEX_PRECISIONS, IndexPrecision

# Build and save an index; add the documents to an empty index; open the saved index and search it.
STEPS = ("build", "add", "search")


def run_step(step: str, count: int, precision: IndexPrecision, folder: Path) -> dict[str, Any]:
    """Run one step in this process, and return the size of its input and its peak memory."""
    encoder = Encoder("nano")
    if step == "search":
        Index.open(folder, encoder).search(np.ones(encoder.dimension), top_k=10)
        return _sizes(None)
    embeddings = np.random.default_rng(0).standard_normal((count, encoder.dimension), dtype=np.float32)
    texts = [f"document {number}" for number in range(count)]
    if step == "build":
        Index.build(encoder, texts, embeddings=embeddings, precision=precision).save(folder)
    else:
        Index.build(encoder, [], precision=precision).add(texts, embeddings=embeddings)
    return _sizes(embeddings.nbytes)


def _sizes(input_bytes: int | None) -> dict[str, Any]:
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "embeddings_mb": None if input_bytes is None else round(input_bytes / 1e6, 1),
        "peak_mb": round(peak_bytes / 1e6, 1),
        "peak_to_embeddings": None if input_bytes is None else round(peak_bytes / input_bytes, 2),
    }


def main() -> None:
    """Run each step in a fresh process, and print the results as JSON."""
    parser = argparse.ArgumentParser(description="Measure the peak memory of an index.")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--precision", choices=INDEX_PRECISIONS, default="int8")
    parser.add_argument("--step", choices=STEPS, help="run only this step, in this process")
    parser.add_argument("--folder", type=Path, help="the folder of the index of --step")
    args = parser.parse_args()
    if args.step:
        print(json.dumps(run_step(args.step, args.documents, args.precision, args.folder)))
        return
    results: dict[str, Any] = {
        "documents": args.documents,
        "precision": args.precision,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    with tempfile.TemporaryDirectory() as folder:
        options = ["--documents", str(args.documents), "--precision", args.precision, "--folder", f"{folder}/index"]
        for step in STEPS:
            command = [sys.executable, __file__, "--step", step, *options]
            results[step] = json.loads(subprocess.check_output(command))  # noqa: S603 - this file
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
