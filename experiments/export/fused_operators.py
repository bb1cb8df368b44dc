"""Time ONNX Runtime's fused operators against the same computation in single nodes.

Run with `python -m experiments.export.fused_operators`. The exporter fuses the patterns that are faster fused, and
leaves the others as they are (`edgeembed_exporters.fusion`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import edgeembed_runtime  # noqa: F401  # import it before onnxruntime: it turns the telemetry off
import numpy as np
import numpy.typing as npt
from edgeembed_bench.schedule import Samples, time_interleaved
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

Array = npt.NDArray[np.float32]
Chain = Callable[[str, str], "list[NodeProto]"]
"""Maps the names of an input and an output to the nodes between them."""

_TOKENS, _WIDTH, _HEADS = 14, 384, 12
_SCALE = 1 / math.sqrt(_WIDTH // _HEADS)
# One operator alone takes less time than the overhead of a session call.
_REPEATED = 24
_WARM_UP, _TURN = 20, 10
_EPSILON = 1e-12
_OPSET, _CONTRIB = 18, "com.microsoft"


@dataclass(frozen=True)
class Form:
    """One implementation of a computation.

    Attributes:
        name: Label in the table.
        chain: Builds the nodes.
    """

    name: str
    chain: Chain


def forms() -> Mapping[str, tuple[Form, Form]]:
    """Return the fused and the unfused implementation of each computation."""
    return {
        "skip and norm": (
            Form("SkipLayerNormalization", _skip_norm),
            Form("Add, LayerNormalization", _sum_and_norm),
        ),
        "bias and GELU": (Form("BiasGelu", _bias_gelu), Form("Add, Gelu", _bias_and_gelu)),
        "GELU": (Form("Gelu", _gelu), Form("Div, Erf, Add, Mul, Mul", _gelu_of_five)),
        "attention": (Form("MultiHeadAttention", _attention), Form("its 12 nodes", _attention_of_parts)),
        "int8 attention, projection": (
            Form("QAttention", _int8_attention),
            Form("MatMulIntegerToFloat, Split, MultiHeadAttention", _int8_attention_of_parts),
        ),
    }


def build(chain: Chain, repeated: int = _REPEATED) -> ModelProto:
    """Return a graph that repeats a computation: float32 x (1, tokens, width) to y of the same shape.

    Args:
        chain: The computation.
        repeated: Number of repetitions; each reads the output of the one before.
    """
    from onnx import TensorProto, helper, numpy_helper

    names = ["x", *(f"x{i}" for i in range(1, repeated)), "y"]
    nodes = [node for start, end in itertools.pairwise(names) for node in chain(start, end)]
    read = {name for node in nodes for name in node.input}
    shape: list[str | int | None] = ["batch", "tokens", _WIDTH]
    graph = helper.make_graph(
        nodes,
        "repeated",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(values, name) for name, values in _constants().items() if name in read],
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def run(model: ModelProto) -> Callable[[Array], Array]:
    """Return a function that runs a graph on one thread, without graph optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def measure(runs: int) -> dict[str, Samples]:
    """Time the graphs of all implementations, interleaved. Each graph repeats its computation 24 times.

    Args:
        runs: Timed calls of each graph.
    """
    calls = {form.name: run(build(form.chain)) for pair in forms().values() for form in pair}
    inputs = list(np.random.default_rng(0).standard_normal((runs, 1, _TOKENS, _WIDTH), dtype=np.float32))
    return time_interleaved(calls, inputs, warmup=_WARM_UP, block=_TURN, seed=0)


@click.command()
@click.option("--runs", default=500, show_default=True, type=click.IntRange(min=1), help="Timed calls of each.")
def command(runs: int) -> None:
    """Measure fused operators against their parts on one thread: 14 tokens of 384, in microseconds."""
    samples = measure(runs)
    table = Table("what", "nodes", "us", "q1", "q3", "x parts", caption="median and quartiles of one of 24 in a row")
    for what, pair in forms().items():
        parts = samples[pair[1].name].quantile_ms(0.5)
        for form in pair:
            found = samples[form.name]
            times_us = (f"{found.quantile_ms(share) * 1e3 / _REPEATED:.1f}" for share in (0.5, 0.25, 0.75))
            table.add_row(what, form.name, *times_us, f"{found.quantile_ms(0.5) / parts:.2f}")
    Console().print(table)


def _constants() -> dict[str, npt.NDArray[Any]]:
    head_width = _WIDTH // _HEADS
    return {
        "gain": np.ones(_WIDTH, np.float32),
        "bias": np.full(_WIDTH, 0.01, np.float32),
        "root": np.array(math.sqrt(2), np.float32),
        "one": np.array(1, np.float32),
        "half": np.array(0.5, np.float32),
        "scale": np.array(_SCALE, np.float32),
        "split": np.array([0, 0, _HEADS, head_width], np.int64),
        "joined": np.array([0, 0, _WIDTH], np.int64),
        "step": np.array(0.04, np.float32),
        "zero": np.array(128, np.uint8),
        "weights": np.random.default_rng(0).integers(-64, 65, (_WIDTH, 3 * _WIDTH)).astype(np.int8),
        "weight_steps": np.full(3 * _WIDTH, 0.001, np.float32),
        "biases": np.full(3 * _WIDTH, 0.01, np.float32),
        "thirds": np.array([_WIDTH] * 3, np.int64),
    }


def _node(kind: str, inputs: str | list[str], outputs: str, **attributes: Any) -> NodeProto:
    from onnx import helper

    return helper.make_node(kind, inputs.split() if isinstance(inputs, str) else inputs, outputs.split(), **attributes)


def _contrib(kind: str, inputs: str | list[str], outputs: str, **attributes: Any) -> NodeProto:
    return _node(kind, inputs, outputs, domain=_CONTRIB, **attributes)


def _skip_norm(x: str, y: str) -> list[NodeProto]:
    return [_contrib("SkipLayerNormalization", f"{x} x gain bias", y, epsilon=_EPSILON)]


def _sum_and_norm(x: str, y: str) -> list[NodeProto]:
    return [
        _node("Add", f"{x} x", f"{y}.sum"),
        _node("LayerNormalization", f"{y}.sum gain bias", y, axis=-1, epsilon=_EPSILON),
    ]


def _bias_gelu(x: str, y: str) -> list[NodeProto]:
    return [_contrib("BiasGelu", f"{x} bias", y)]


def _bias_and_gelu(x: str, y: str) -> list[NodeProto]:
    return [_node("Add", f"{x} bias", f"{y}.sum"), _contrib("Gelu", f"{y}.sum", y)]


def _gelu(x: str, y: str) -> list[NodeProto]:
    return [_contrib("Gelu", x, y)]


def _gelu_of_five(x: str, y: str) -> list[NodeProto]:
    return [
        _node("Div", f"{x} root", f"{y}.scaled"),
        _node("Erf", f"{y}.scaled", f"{y}.erf"),
        _node("Add", f"{y}.erf one", f"{y}.plus_one"),
        _node("Mul", f"{x} {y}.plus_one", f"{y}.twice"),
        _node("Mul", f"{y}.twice half", y),
    ]


def _attention(x: str, y: str) -> list[NodeProto]:
    return [_contrib("MultiHeadAttention", f"{x} x {x}", y, num_heads=_HEADS, scale=_SCALE)]


def _attention_of_parts(x: str, y: str) -> list[NodeProto]:
    queries, keys, values = ((name, f"{y}.{part}") for name, part in ((x, "queries"), ("x", "keys"), (x, "values")))
    split = [_node("Reshape", f"{name} split", f"{part}.split") for name, part in (queries, keys, values)]
    return [
        *split,
        _node("Transpose", f"{y}.queries.split", f"{y}.queries", perm=[0, 2, 1, 3]),
        _node("Transpose", f"{y}.keys.split", f"{y}.keys", perm=[0, 2, 3, 1]),
        _node("Transpose", f"{y}.values.split", f"{y}.values", perm=[0, 2, 1, 3]),
        _node("MatMul", f"{y}.queries {y}.keys", f"{y}.products"),
        _node("Mul", f"{y}.products scale", f"{y}.scores"),
        _node("Softmax", f"{y}.scores", f"{y}.shares", axis=-1),
        _node("MatMul", f"{y}.shares {y}.values", f"{y}.heads"),
        _node("Transpose", f"{y}.heads", f"{y}.back", perm=[0, 2, 1, 3]),
        _node("Reshape", f"{y}.back joined", y),
    ]


def _int8_attention(x: str, y: str) -> list[NodeProto]:
    inputs = [f"{y}.levels", "weights", "biases", "step", "weight_steps", "", "zero"]
    return [
        _node("QuantizeLinear", f"{x} step zero", f"{y}.levels"),
        _contrib("QAttention", inputs, y, num_heads=_HEADS, scale=_SCALE),
    ]


def _int8_attention_of_parts(x: str, y: str) -> list[NodeProto]:
    factors = [f"{y}.levels", "weights", "step", "weight_steps", "zero", "", "biases"]
    parts = f"{y}.queries {y}.keys {y}.values"
    return [
        _node("QuantizeLinear", f"{x} step zero", f"{y}.levels"),
        _contrib("MatMulIntegerToFloat", factors, f"{y}.all"),
        _node("Split", f"{y}.all thirds", parts, axis=-1),
        _contrib("MultiHeadAttention", parts, y, num_heads=_HEADS, scale=_SCALE),
    ]


if __name__ == "__main__":
    command()
