"""Measure how ONNX Runtime's session options change load time, latency and memory of the default encoder.

Run with `python -m experiments.runtime.session_options`.
"""

import os
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np
from edgeembed_runtime import Bundle
from edgeembed_runtime.builtin_models import builtin_bundle
from rich.console import Console
from rich.table import Table

_CALLS = 300
_TOKENS = 12
_FIRST = 500


@dataclass(frozen=True)
class Options:
    """Session options; the defaults are those of the runtime.

    Attributes:
        name: What differs from the runtime's options.
        arena: Whether to enable the CPU memory arena (`enable_cpu_mem_arena`).
        pattern: Whether to plan allocations for each input shape (`enable_mem_pattern`).
        reuse: Whether intermediate results may share memory (`enable_mem_reuse`).
        optimized: Whether to run all graph optimizations.
        threads: Threads of an operator (`intra_op_num_threads`).
    """

    name: str = "as the runtime"
    arena: bool = True
    pattern: bool = False
    reuse: bool = False
    optimized: bool = False
    threads: int = 1


CHOICES = (
    Options(),
    Options("arena off", arena=False),
    Options("pattern on", pattern=True),
    Options("re-use on", reuse=True),
    Options("optimized", optimized=True),
    Options("2 threads", threads=2),
)


@dataclass(frozen=True)
class Speed:
    """Load time, and median time of a call with 12 tokens, in one new process."""

    load_ms: float
    call_ms: float


def measure_speed(options: Options) -> Speed:
    """Measure the load time and the latency of a short text."""
    begun = time.perf_counter()
    session = _session(options)
    load_ms = (time.perf_counter() - begun) * 1e3
    calls_ms = []
    for _ in range(_CALLS):
        begun = time.perf_counter()
        _run(session, list(range(_TOKENS)))
        calls_ms.append((time.perf_counter() - begun) * 1e3)
    return Speed(load_ms, float(np.median(calls_ms)))


def measure_memory(options: Options, texts: int) -> list[float]:
    """Return the resident memory in MB after each text of 1 to 500 random tokens, truncated to the maximum length."""
    session, limit = _session(options), Bundle.open(builtin_bundle()).max_seq_length
    lengths = random.Random(0)  # noqa: S311 - no secret
    resident_mb = []
    for _ in range(texts):
        _run(session, [lengths.randrange(1000) for _ in range(min(limit, lengths.randint(1, 500)))])
        resident_mb.append(_resident_bytes() / 1e6)
    return resident_mb


@click.command()
@click.option("--texts", default=2500, show_default=True, type=click.IntRange(min=1), help="Texts for the memory.")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(min=1), help="New processes for the times.")
def command(texts: int, rounds: int) -> None:
    """Compare one option at a time with the runtime's options, in new processes, interleaved."""
    table = Table("options", "load ms", "call ms", f"MB after {_FIRST}", "min after", "max after", "at the end")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        speeds: dict[str, list[Speed]] = {options.name: [] for options in CHOICES}
        for options in _turns(rounds):
            speeds[options.name].append(processes.submit(measure_speed, options).result())
        for options in CHOICES:
            memory_mb = processes.submit(measure_memory, options, texts).result()
            later = memory_mb[_FIRST - 1 :] or memory_mb[-1:]
            load_ms = np.median([speed.load_ms for speed in speeds[options.name]])
            call_ms = np.median([speed.call_ms for speed in speeds[options.name]])
            sizes = (later[0], min(later), max(later), later[-1])
            table.add_row(options.name, f"{load_ms:.1f}", f"{call_ms:.3f}", *(f"{size:.1f}" for size in sizes))
    Console().print(table)


def _turns(rounds: int) -> Iterator[Options]:
    order = random.Random(0)  # noqa: S311 - no secret
    for _ in range(rounds):
        yield from order.sample(CHOICES, len(CHOICES))


def _session(options: Options) -> Any:
    import onnxruntime

    made = onnxruntime.SessionOptions()
    made.enable_cpu_mem_arena, made.enable_mem_pattern = options.arena, options.pattern
    made.enable_mem_reuse = options.reuse
    made.intra_op_num_threads = options.threads
    made.add_session_config_entry("session.intra_op.allow_spinning", "0")
    levels = onnxruntime.GraphOptimizationLevel
    made.graph_optimization_level = levels.ORT_ENABLE_ALL if options.optimized else levels.ORT_DISABLE_ALL
    bundle = Bundle.open(builtin_bundle())
    return onnxruntime.InferenceSession(str(bundle.path / bundle.model_file), made, providers=["CPUExecutionProvider"])


def _run(session: Any, token_ids: Sequence[int]) -> None:
    ids = np.array([token_ids], dtype=np.int64)
    session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    command()
