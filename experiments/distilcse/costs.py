"""Measure what contrastive distillation adds to a step: teacher cache, bank, evaluations and checkpoints.

python -m experiments.distilcse.costs STUDENT CORPUS.txt.xz DEV.tsv --out costs.json

Rounds are interleaved, each on another batch of real sentences; the result has every time, and the machine. The costs
of evaluations and checkpoints are shares of the steps between them.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click
import numpy as np
import torch
from edgeembed_bench.machine import this_machine
from safetensors.torch import save_file
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

from edgeembed.corpus import gather_corpus
from edgeembed.corpus.pairs import read_sts
from edgeembed.hardware import has_bf16
from edgeembed.losses.base import LossInputs
from edgeembed.losses.contrastive_distillation import ContrastiveDistillationLoss
from edgeembed.models import load_model

ROUNDS, BATCH, WIDTH, BANK, BETWEEN = 15, 512, 384, 65_536, 125


def seconds(work: Callable[[], object]) -> float:
    """Return the time that a piece of work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def batch_of(generator: torch.Generator, rows: torch.Tensor) -> LossInputs:
    """Return a batch of random vectors of those rows."""
    ours, theirs = (torch.nn.functional.normalize(torch.randn(len(rows), WIDTH, generator=generator)) for _ in range(2))
    return LossInputs(ours.requires_grad_(), theirs, theirs, rows, rows, rows, ours, theirs)


@click.command(help=__doc__)
@click.argument("student_folder", metavar="STUDENT", type=click.Path(exists=True, file_okay=False))
@click.argument("corpus", type=click.Path(exists=True))
@click.argument("dev_file", metavar="DEV", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="JSON file to write.")
def main(student_folder: str, corpus: str, dev_file: Path, out: Path) -> None:
    """Print the measurements as JSON."""
    torch.manual_seed(0)
    generator, draw = torch.Generator().manual_seed(0), np.random.default_rng(0)
    student = load_model(student_folder, device="cpu").train()
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-4)
    sentences = gather_corpus([corpus], limit=ROUNDS * BATCH, max_characters=120).sentences
    dev = read_sts(dev_file)
    evaluator = EmbeddingSimilarityEvaluator(dev.first, dev.second, dev.scores.tolist(), write_csv=False)
    losses = {size: ContrastiveDistillationLoss(size, WIDTH, 0.05) for size in (0, BANK)}
    for first in range(0, BANK, BATCH):
        losses[BANK](batch_of(generator, torch.arange(first, first + BATCH)))
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        cached = np.memmap(Path(folder) / "cache", dtype=np.float16, mode="w+", shape=(2 * BANK, WIDTH))
        cached[:] = draw.normal(size=cached.shape)

        def learn(texts: list[str]) -> None:
            with torch.autocast("cpu", torch.bfloat16, enabled=has_bf16("cpu")):  # as the trainer does
                vectors = student(student.preprocess(texts))["sentence_embedding"]
            vectors.float().square().sum().backward()
            torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

        def cached_vectors(rows: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(np.asarray(cached[rows.numpy()], dtype=np.float32))

        def backward(bank: int, inputs: LossInputs) -> None:
            losses[bank](inputs).backward()

        def checkpoint() -> None:
            student.save(f"{folder}/student", create_model_card=False)
            torch.save(optimizer.state_dict(), f"{folder}/optimizer.pt")
            save_file(losses[BANK].state_dict(), f"{folder}/losses.safetensors")

        for number in range(ROUNDS):
            rows = torch.from_numpy(draw.integers(0, 2 * BANK, BATCH))
            inputs = batch_of(generator, rows)
            texts = sentences[number * BATCH : (number + 1) * BATCH]
            steps: dict[str, Callable[[], object]] = {
                "student": partial(learn, texts),
                "cache": partial(cached_vectors, rows),
                "batch negatives": partial(backward, 0, inputs),
                "batch and bank negatives": partial(backward, BANK, inputs),
                "bank update": partial(losses[BANK]._add_to_bank, inputs.target, inputs.rows),
                "evaluation": partial(evaluator, student),
                "checkpoint": checkpoint,
            }
            for name, work in steps.items():
                times.setdefault(name, []).append(seconds(work))
            student.train()
    medians = {name: statistics.median(found) for name, found in times.items()}
    step = medians["student"] + medians["batch negatives"]
    shares = {
        "cache": medians["cache"] / step,
        "bank update": medians["bank update"] / step,
        "negatives of the bank": (medians["batch and bank negatives"] - medians["batch negatives"]) / step,
        "evaluations": medians["evaluation"] / BETWEEN / step,
        "checkpoints": medians["checkpoint"] / BETWEEN / step,
    }
    percent = {name: round(100 * share, 2) for name, share in shares.items()}
    machine = {**asdict(this_machine()), "torch_threads": torch.get_num_threads()}
    result = {"percent_of_a_step": percent, "median_s": medians, "seconds": times, "machine": machine}
    out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
