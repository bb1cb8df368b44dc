"""Compare the time of each built-in ONNX encoder with what its arithmetic needs on one core.

Run with `python -m experiments.roofline > docs/results/roofline.json`, where nothing else runs; docs/results/wheel.md
describes the result. For each encoder and number of tokens: multiply-adds and weight bytes of the graph, the time that
they take at the highest rates that this core reaches, the time of a run, and the time of each kind of node as ONNX
Runtime's profiler counts it.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import edgeembed_runtime
import numpy as np
import numpy.typing as npt
import onnxruntime
from edgeembed_bench.machine import this_machine
from edgeembed_runtime import Encoder

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_TOKENS = (14, 128)
_RUNS = 2_000
_SQUARE = 1_024  # rows, columns and inner dimension of the product that measures the peak
_MATMULS = ("MatMulIntegerToFloat", "QAttention")


@dataclass(frozen=True)
class Work:
    """What a graph computes for one text.

    Attributes:
        multiply_adds: Multiply-adds of all products.
        weight_bytes: Bytes of all weights but the embedding tables, of which a text reads a few rows.
        nodes: Number of nodes.
    """

    multiply_adds: int
    weight_bytes: int
    nodes: int


@click.command()
@click.option("--runs", default=_RUNS, show_default=True, help="Timed runs for each encoder and number of tokens.")
def command(runs: int) -> None:
    """Print the comparison as JSON."""
    machine = this_machine()
    peak = peak_rate(runs=max(5, runs // 100))
    found = []
    for name in ("mini", "nano"):
        path = Path(str(Encoder(name).bundle.path)) / Encoder(name).bundle.model_file
        found += [{"encoder": name, **measure(path, tokens, peak, runs)} for tokens in _TOKENS]
    report = {
        "onnxruntime": onnxruntime.__version__,
        "edgeembed_runtime": edgeembed_runtime.__version__,
        "cpu": machine.cpu,
        "instruction_sets": [flag for flag in machine.flags if flag.startswith(("avx", "amx"))],
        "peak_multiply_adds_per_second": round(peak),
        "encoders": found,
    }
    click.echo(json.dumps(report, indent=1))


def measure(path: Path, tokens: int, peak: float, runs: int) -> dict[str, Any]:
    """Return work and times of a graph for a text of a number of tokens, in microseconds.

    Args:
        path: The ONNX file of a bundle.
        tokens: Number of tokens of the text.
        peak: Multiply-adds per second that one core reaches.
        runs: Number of timed runs.
    """
    import onnx

    work = count_work(onnx.load(str(path)), tokens)
    feeds = {name: np.full((1, tokens), 1, dtype=np.int64) for name in ("input_ids", "attention_mask")}
    plain = _session(path)
    run_us = _median_us(lambda: plain.run(None, feeds), runs)
    bandwidth_us = _median_us(_reader(work.weight_bytes), runs)
    return {
        "tokens": tokens,
        **asdict(work),
        "arithmetic_us": round(1e6 * work.multiply_adds / peak, 2),
        "read_weights_us": round(bandwidth_us, 2),
        "run_us": round(run_us, 2),
        "node_us": _profile(path, feeds, runs),
    }


def count_work(model: ModelProto, tokens: int) -> Work:
    """Return the multiply-adds and weight bytes of an int8 graph of the exporter.

    Args:
        model: The graph. Its products are MatMulIntegerToFloat and QAttention nodes with constant weights.
        tokens: Number of tokens of the text.
    """
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    total, weight_bytes = 0, 0
    for node in model.graph.node:
        if node.op_type in _MATMULS:
            inner, outer = shapes[node.input[1]]
            total += tokens * inner * outer + _attention(node, tokens, outer)
            weight_bytes += inner * outer
    return Work(total, weight_bytes, len(model.graph.node))


def _attention(node: NodeProto, tokens: int, outer: int) -> int:
    """Return the multiply-adds of the scores and the weighted sums; `outer` is three times the width."""
    return 2 * tokens * tokens * outer // 3 if node.op_type == "QAttention" else 0


def peak_rate(runs: int) -> float:
    """Return the multiply-adds per second of a large int8 product in ONNX Runtime, on one thread."""
    from onnx import TensorProto, helper

    shape = [_SQUARE, _SQUARE]
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["y"])],
        "peak",
        [helper.make_tensor_value_info("a", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, shape)],
        [helper.make_tensor("b", TensorProto.INT8, shape, _random(np.int8).tobytes(), raw=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    session = _session(model.SerializeToString())
    feeds = {"a": _random(np.uint8)}
    return 1e6 * _SQUARE**3 / _median_us(lambda: session.run(None, feeds), runs)


def _random(dtype: Any) -> npt.NDArray[Any]:
    limits = np.iinfo(dtype)
    return np.random.default_rng(0).integers(limits.min, limits.max, (_SQUARE, _SQUARE), dtype=dtype)


def _reader(size_bytes: int) -> Callable[[], Any]:
    """Return a function that reads as many bytes, from the cache if they fit."""
    data = np.ones(math.ceil(size_bytes / 8), dtype=np.int64)
    return data.max


def _median_us(call: Callable[[], Any], runs: int) -> float:
    times = []
    for _ in range(runs + runs // 10):
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times[runs // 10 :]) / 1e3


def _profile(path: Path, feeds: dict[str, npt.NDArray[np.int64]], runs: int) -> dict[str, dict[str, float]]:
    """Return, by operator, the number of nodes and the mean of their time in a run; the profiler counts whole us."""
    with tempfile.TemporaryDirectory() as folder:
        session = _session(path, profile=Path(folder) / "profile")
        for _ in range(runs):
            session.run(None, feeds)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    times: defaultdict[str, float] = defaultdict(float)
    nodes: Counter[str] = Counter()
    for event in events:
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            times[event["args"]["op_name"]] += event["dur"] / runs
            nodes[event["args"]["op_name"]] += 1
    return {
        name: {"nodes": round(nodes[name] / runs), "us": round(total, 2)}
        for name, total in sorted(times.items(), key=lambda item: -item[1])
    }


def _session(model: Path | bytes, profile: Path | None = None) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    command()
