from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from edgeembed_exporters import inspect_model
from edgeembed_exporters.onnx.optimum import trace_with_optimum
from edgeembed_exporters.onnx.tracing import build_graph, trace
from edgeembed_runtime.errors import InputError, MissingExtraError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from .conftest import HF, HIDDEN, MAX_SEQ_LENGTH, SMALL, Word, make_model, make_tokenizer

pytestmark = pytest.mark.slow  # the default suite has two minutes

is_installed = importlib.util.find_spec("optimum") is not None
with_optimum = pytest.mark.skipif(not is_installed, reason="edgeembed[optimum] is not installed")

SHAPES = [(1, 1), (1, 9), (3, 2), (5, MAX_SEQ_LENGTH)]


def traced_by_both(model: SentenceTransformer) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    source = inspect_model(model)
    limit = source.max_seq_length
    return trace(build_graph(source), limit), trace_with_optimum(build_graph(source), limit)


def run(model: onnx.ModelProto, batch: int, tokens: int) -> list[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    draw = np.random.default_rng(batch * 100 + tokens)
    ids = draw.integers(5, SMALL["vocab_size"], (batch, tokens))
    mask = (np.arange(tokens) < draw.integers(1, tokens + 1, (batch, 1))).astype(np.int64)
    given: list[Any] = session.run(None, {"input_ids": ids * mask, "attention_mask": mask})
    return [mask[..., None] * given[0], given[1]]  # what padding gives is no one's


def signature(model: onnx.ModelProto) -> list[tuple[str, int, list[Any]]]:
    return [
        (
            value.name,
            value.type.tensor_type.elem_type,
            [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim],
        )
        for value in (*model.graph.input, *model.graph.output)
    ]


@with_optimum
@pytest.mark.parametrize(
    "kind",
    [
        "factorised",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("bert", "mpnet", "distilbert", "roberta")),
    ],
)
def test_both_tracers_agree_at_all_sizes(kind: str) -> None:
    torch_only, with_both = traced_by_both(make_model(kind, dense=kind != "mpnet"))
    onnx.checker.check_model(with_both, full_check=True)
    assert signature(with_both) == signature(torch_only)
    for batch, tokens in SHAPES:
        for one, other in zip(run(torch_only, batch, tokens), run(with_both, batch, tokens), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


@with_optimum
def test_the_error_names_an_architecture_without_a_configuration() -> None:
    class Unheard(HF.BertConfig):  # type: ignore[misc]
        model_type = "unheard"

    encoder = HF.BertModel(Unheard(**SMALL, hidden_size=HIDDEN, num_hidden_layers=1, intermediate_size=64)).eval()
    model = make_model()
    model[0] = Word(encoder, make_tokenizer())
    graph = build_graph(inspect_model(model))
    with pytest.raises(
        InputError, match=r"no export configuration for BertModel \(unheard\).*choose the tracer 'torch'"
    ):
        trace_with_optimum(graph, MAX_SEQ_LENGTH)


@with_optimum
def test_optimum_does_not_trace_a_static_model() -> None:
    static = StaticEmbedding(make_tokenizer().backend_tokenizer, embedding_weights=torch.ones(85, 8).numpy())
    graph = build_graph(inspect_model(SentenceTransformer(modules=[static], device="cpu")))
    with pytest.raises(InputError, match=r"is a StaticEmbedding.*choose the tracer 'torch'"):
        trace_with_optimum(graph, MAX_SEQ_LENGTH)


def test_the_error_without_optimum_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def is_missing(name: str) -> Any:
        raise ImportError(name)

    graph = build_graph(inspect_model(make_model()))
    monkeypatch.setattr("importlib.import_module", is_missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'edgeembed\[optimum\]'"):
        trace_with_optimum(graph, MAX_SEQ_LENGTH)
