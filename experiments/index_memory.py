"""Measure the peak memory of building, extending and searching an index, each in a fresh process.

python experiments/index_memory.py [--documents N] [--precision int8] > docs/results/index-memory.json

The embeddings are random and have the dimension of the encoder "nano", 256. The peak is `ru_maxrss` of the whole
process, with Python, the libraries, the encoder and the embeddings. `Index.build_from` reads Parquet files of float16
embeddings like those of `edgeembed encode`, of N documents and of four times as many.
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
# Write Parquet files; build an index of them, with positions or strings as ids; open it and search it.
PARQUET_STEPS = ("write", "build_from", "build_from_with_ids", "search")
_SHARD_ROWS = 16_384


def run_step(step: str, count: int, precision: IndexPrecision, folder: Path) -> dict[str, Any]:
    """Run one step in this process, and return the size of its input and its peak memory."""
    encoder = Encoder("nano")
    index = folder / "index"
    if step == "write":
        write_shards(folder / "shards", count, encoder.dimension)
        return _sizes(None)
    if step == "search":
        Index.open(index, encoder).search(np.ones(encoder.dimension), top_k=10)
        return _sizes(None)
    if step.startswith("build_from"):
        id_column = "id" if step.endswith("ids") else None
        Index.build_from(encoder, folder / "shards", index, id_column=id_column, precision=precision, force=True)
        return _sizes(None)
    embeddings = np.random.default_rng(0).standard_normal((count, encoder.dimension), dtype=np.float32)
    texts = [f"document {number}" for number in range(count)]
    if step == "build":
        Index.build(encoder, texts, embeddings=embeddings, precision=precision).save(index)
    else:
        Index.build(encoder, [], precision=precision).add(texts, embeddings=embeddings)
    return _sizes(embeddings.nbytes)


def write_shards(folder: Path, count: int, dimension: int) -> None:
    """Write Parquet files of documents with random float16 embeddings."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    generator = np.random.default_rng(0)
    for first in range(0, count, _SHARD_ROWS):
        numbers = range(first, min(first + _SHARD_ROWS, count))
        values = generator.standard_normal(len(numbers) * dimension, dtype=np.float32).astype(np.float16)
        columns = {
            "id": [f"id-{number:012d}" for number in numbers],
            "text": [f"document {number}" for number in numbers],
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(values), dimension),
        }
        pq.write_table(pa.table(columns), folder / f"{first:012d}.parquet", use_dictionary=False)


def _sizes(input_bytes: int | None) -> dict[str, Any]:
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "embeddings_mb": None if input_bytes is None else round(input_bytes / 1e6, 1),
        "peak_mb": round(peak_bytes / 1e6, 1),
        "peak_to_embeddings": None if input_bytes is None else round(peak_bytes / input_bytes, 2),
    }


def run_steps(steps: tuple[str, ...], count: int, precision: str, folder: str) -> dict[str, Any]:
    """Run steps one after the other, each in a fresh process, with one folder."""
    options = ["--documents", str(count), "--precision", precision, "--folder", folder]
    commands = {step: [sys.executable, __file__, "--step", step, *options] for step in steps}
    return {step: json.loads(subprocess.check_output(command)) for step, command in commands.items()}  # noqa: S603


def measure_parquet(count: int, precision: str) -> dict[str, Any]:
    """Return the size of Parquet files, and the peak memory in MB of each step with them."""
    with tempfile.TemporaryDirectory() as folder:
        # Not in this process: a process starts with the peak of the one that it was forked from.
        steps = run_steps(PARQUET_STEPS, count, precision, folder)
        size = sum(file.stat().st_size for file in Path(folder, "shards").iterdir())
        return {"parquet_mb": round(size / 1e6, 1), **{step: steps[step]["peak_mb"] for step in PARQUET_STEPS[1:]}}


def main() -> None:
    """Run each step in a fresh process, and print the results as JSON."""
    parser = argparse.ArgumentParser(description="Measure the peak memory of an index.")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--precision", choices=INDEX_PRECISIONS, default="int8")
    parser.add_argument("--step", choices=(*STEPS, *PARQUET_STEPS), help="run only this step, in this process")
    parser.add_argument("--folder", type=Path, help="the folder of the index of --step")
    args = parser.parse_args()
    if args.step:
        print(json.dumps(run_step(args.step, args.documents, args.precision, args.folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        steps = run_steps(STEPS, args.documents, args.precision, folder)
    counts = (args.documents, 4 * args.documents)
    results: dict[str, Any] = {
        "documents": args.documents,
        "precision": args.precision,
        "python": platform.python_version(),
        "numpy": np.__version__,
        **steps,
        "parquet": {count: measure_parquet(count, args.precision) for count in counts},
    }
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
