"""Trace with optimum, if `edgeembed[optimum]` is installed.

Optimum has configurations for about a hundred architectures, with their inputs and the patches that tracing needs, but
none for pooling and head. So optimum traces the encoder, torch traces the rest, and both graphs are joined.
"""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

import onnx
import torch
from edgeembed_runtime.errors import InputError, MissingExtraError
from onnx import TensorProto, compose, helper
from torch import nn

from edgeembed_exporters.modules import StaticEncoder
from edgeembed_exporters.onnx.tracing import (
    INPUTS,
    OPSET,
    OUTPUTS,
    SentenceGraph,
    normalize_rows,
    quiet,
    remove_metadata,
    trace_module,
)

_TASK = "feature-extraction"
_EXAMPLE_TOKENS = 8
_PREFIX = "head."


def trace_with_optimum(graph: SentenceGraph, max_seq_length: int) -> onnx.ModelProto:
    """Trace a graph to ONNX with the same inputs, outputs and dynamic sizes as `tracing.trace`.

    Args:
        graph: The graph.
        max_seq_length: Maximum number of tokens of its inputs.

    Raises:
        MissingExtraError: If optimum is not installed.
        InputError: If optimum has no configuration for this architecture, or cannot trace it.
    """
    tokens = min(_EXAMPLE_TOKENS, max_seq_length)
    if isinstance(graph.encoder, StaticEncoder):
        raise InputError(
            "the model is a StaticEmbedding; optimum traces transformers encoders only: choose the tracer 'torch'"
        )
    with quiet():
        encoder = _trace_encoder(graph.encoder, tokens)
    example = torch.ones(2, tokens, int(graph.encoder.config.hidden_size)), torch.ones(2, tokens, dtype=torch.int64)
    head = trace_module(_Head(graph.head), example, ("token_embeddings", "attention_mask"), ("sentence_embedding",))
    return _join(encoder, head)


class _Head(nn.Module):
    """Pooling, head and normalization, as in a SentenceGraph."""

    def __init__(self, modules: nn.ModuleList) -> None:
        super().__init__()
        self.head = modules

    def forward(self, token_embeddings: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        features = {"token_embeddings": token_embeddings, "attention_mask": attention_mask}
        for module in self.head:
            features = module(features)
        return normalize_rows(features["sentence_embedding"])


def _trace_encoder(encoder: Any, tokens: int) -> onnx.ModelProto:
    try:
        exporter = importlib.import_module("optimum.exporters.onnx")
    except ImportError as error:
        raise MissingExtraError("optimum-onnx", "optimum") from error
    configuration = _configuration(encoder)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "encoder.onnx"
        try:
            exporter.export(
                encoder,
                configuration,
                file,
                opset=OPSET,
                input_shapes={"batch_size": 2, "sequence_length": tokens},
                disable_dynamic_axes_fix=True,  # it would run the graph to name its sizes, as `_join` does
            )
        except Exception as error:  # optimum, torch and the model's code raise errors without a common base
            raise InputError(
                f"optimum cannot trace {type(encoder).__name__} ({type(error).__name__}); expected an encoder such as "
                "BERT or MPNet: choose the tracer 'torch'"
            ) from error
        model = onnx.load(file)
    remove_metadata(model)
    return model


def _configuration(encoder: Any) -> Any:
    """Return optimum's configuration for an architecture, without the inputs that a bundle does not have."""
    importlib.import_module("optimum.exporters.onnx.model_configs")  # importing it registers the configurations
    tasks_manager = importlib.import_module("optimum.exporters.tasks").TasksManager
    name, kind = type(encoder).__name__, str(encoder.config.model_type)
    try:
        make = tasks_manager.get_exporter_config_constructor(
            "onnx", encoder, "feature-extraction", library_name="transformers"
        )
    except (KeyError, ValueError) as error:
        raise InputError(
            f"optimum has no export configuration for {name} ({kind}); expected an encoder such as BERT or MPNet: "
            "choose the tracer 'torch'"
        ) from error
    made = make(encoder.config)
    inputs = {name: sizes for name, sizes in made.inputs.items() if name in INPUTS}
    made.__class__ = type(type(made).__name__, (type(made),), {"inputs": inputs})
    return made


def _join(encoder: onnx.ModelProto, head: onnx.ModelProto) -> onnx.ModelProto:
    tokens, vector = OUTPUTS
    head = compose.add_prefix(head, _PREFIX)
    names = {f"{_PREFIX}token_embeddings": tokens, f"{_PREFIX}attention_mask": INPUTS[1], f"{_PREFIX}{vector}": vector}
    for node in head.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    outputs = [head.graph.input[0], head.graph.output[0]]  # with the sizes that torch inferred
    for output, name in zip(outputs, OUTPUTS, strict=True):
        output.name = name
    joined = helper.make_graph(
        [*encoder.graph.node, *head.graph.node],
        encoder.graph.name,
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in INPUTS],
        outputs,
        [*encoder.graph.initializer, *head.graph.initializer],
    )
    return helper.make_model(joined, opset_imports=head.opset_import, ir_version=head.ir_version)
