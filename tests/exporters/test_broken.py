"""The gate detects faulty quantization: a graph that is valid and runs, but computes other embeddings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from edgeembed_exporters import BundleSettings, GateError, ModelSpec, export, exporting, inspect_model
from edgeembed_exporters.onnx.tracing import SentenceGraph, build_graph, trace
from edgeembed_exporters.precision import PRECISIONS
from onnx import numpy_helper
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense

from .conftest import HIDDEN, SENTENCES, SMALL, make_model

pytestmark = pytest.mark.slow  # the default suite has two minutes

Array = np.ndarray[Any, Any]
Damage = Callable[[onnx.GraphProto], None]


def change(graph: onnx.GraphProto, wanted: Callable[[onnx.TensorProto], bool], make: Callable[[Array], Array]) -> None:
    """Change the last constant of a kind."""
    tensor = [tensor for tensor in graph.initializer if wanted(tensor)][-1]
    changed = make(numpy_helper.to_array(tensor).copy())
    tensor.CopyFrom(numpy_helper.from_array(changed, tensor.name))


def one_scale_is_eight_times_too_large(graph: onnx.GraphProto) -> None:
    def grow(scales: Array) -> Array:
        scales[0] *= 8
        return scales

    change(graph, lambda tensor: tensor.name.endswith(".weight_scales"), grow)


def the_zero_point_is_another_than_that_of_the_levels(graph: onnx.GraphProto) -> None:
    zeros = {tensor.name: tensor for tensor in graph.initializer if tensor.data_type == onnx.TensorProto.UINT8}
    product = [node for node in graph.node if node.op_type.startswith("MatMulInteger")][-1]
    place = next(place for place, name in enumerate(product.input) if name in zeros)
    other = numpy_helper.to_array(zeros[product.input[place]]) ^ np.uint8(64)
    graph.initializer.append(numpy_helper.from_array(other, "other_zero"))
    product.input[place] = "other_zero"


def two_rows_of_the_table_are_swapped(graph: onnx.GraphProto) -> None:
    def swap(table: Array) -> Array:
        special, letter = 2, 9  # the token that begins every sentence, and one that some of them have
        table[[special, letter]] = table[[letter, special]]
        return table

    change(graph, lambda tensor: list(tensor.dims) == [SMALL["vocab_size"], HIDDEN], swap)


def the_levels_are_one_row_off(graph: onnx.GraphProto) -> None:
    def is_matrix(tensor: onnx.TensorProto) -> bool:
        return tensor.data_type == onnx.TensorProto.INT8 and len(tensor.dims) == 2

    change(graph, is_matrix, lambda levels: np.roll(levels, 1, axis=0))


def a_matrix_is_lost(graph: onnx.GraphProto) -> None:
    change(graph, lambda tensor: tensor.data_type == onnx.TensorProto.INT8, np.zeros_like)


DAMAGES: list[Damage] = [
    one_scale_is_eight_times_too_large,
    the_zero_point_is_another_than_that_of_the_levels,
    two_rows_of_the_table_are_swapped,
    the_levels_are_one_row_off,
    a_matrix_is_lost,
]


@pytest.fixture(scope="module")
def traced(model: SentenceTransformer) -> onnx.ModelProto:
    """The tiny model's graph: most of an export's time, and not what goes wrong here."""
    source = inspect_model(model)
    return trace(build_graph(source), source.max_seq_length)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broken_quantization_is_caught_and_not_written(
    model: SentenceTransformer,
    traced: onnx.ModelProto,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Damage,
) -> None:
    quantize = PRECISIONS["int8"].quantize
    monkeypatch.setitem(exporting.TRACERS, "torch", lambda *_: traced)

    def quantize_badly(*arguments: Any) -> onnx.ModelProto:
        made: onnx.ModelProto = quantize(*arguments)
        damage(made.graph)
        onnx.checker.check_model(made)
        return made

    monkeypatch.setattr(PRECISIONS["int8"], "quantize", quantize_badly)
    with pytest.raises(GateError, match=r"required is 0\.99; nothing was written") as caught:
        export(model, tmp_path / "b", BundleSettings(precision="int8"), sentences=SENTENCES)
    assert list(tmp_path.iterdir()) == []
    assert caught.value.parity is not None
    assert len(caught.value.parity.worst_sentences) == 10


def test_a_dropped_head_is_caught_and_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(dense=False)
    model.insert(2, Dense(HIDDEN, HIDDEN))

    def build_without_head(source: ModelSpec) -> SentenceGraph:
        graph = build_graph(source)
        graph.head = graph.head[:1]  # as an exporter does that writes token vectors and leaves the rest to others
        return graph

    monkeypatch.setattr(exporting, "build_graph", build_without_head)
    with pytest.raises(GateError, match="nothing was written"):
        export(model, tmp_path / "b", sentences=SENTENCES)
    assert list(tmp_path.iterdir()) == []
