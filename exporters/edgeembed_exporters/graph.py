"""The graph of a bundle: token ids in, a sentence's vector of unit length out."""

import contextlib
import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, cast

import onnx
import torch
from edgeembed_runtime.errors import InputError
from torch import nn

from edgeembed_exporters.pooling import MaskedPooling, modes_for_direction
from edgeembed_exporters.source import Source, pooling_modes
from edgeembed_exporters.unused import cut_positions, fold_token_types

# The first opset that torch's exporter writes without converting; onnxruntime knows it since 1.14.
OPSET = 18
INPUTS = ("input_ids", "attention_mask")
# optimum and transformers.js read tokens under this name; fastembed and we ask for the other.
OUTPUTS = ("last_hidden_state", "sentence_embedding")
_EXAMPLE_TOKENS = 8
_TINY = 1e-12
_LOGGERS = ("torch.onnx", "torch.export", "onnxscript", "onnx_ir", "transformers", "optimum")


class SentenceGraph(nn.Module):
    """An encoder, its pooling, head and normalisation as one function of two tensors.

    Vectors are normalised even where the model has no Normalize module: a bundle's always have unit length.

    Args:
        encoder: A transformers encoder, or what stands in its place.
        modules: What makes a sentence's vector of its output: a pooling, then modules of sentence-transformers.
    """

    encoder: Any

    def __init__(self, encoder: nn.Module, modules: tuple[nn.Module, ...]) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.ModuleList(modules)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Give float32 vectors of tokens (batch, tokens, width) and of sentences (batch, dimension).

        Token vectors cost nothing, since they are computed anyway, and are what sentence-transformers and
        transformers.js read from such a file.
        """
        tokens = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        features = {"token_embeddings": tokens, "attention_mask": attention_mask}
        for module in self.head:
            features = module(features)
        return tokens, unit_rows(features["sentence_embedding"])


def unit_rows(vectors: torch.Tensor) -> torch.Tensor:
    """Give vectors (rows, width) of unit length, as functional.normalize does with two nodes more."""
    lengths: torch.Tensor = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return vectors / lengths.clamp_min(_TINY)


def build_graph(source: Source) -> SentenceGraph:
    """Give a model's graph as a torch module: a copy, without what a single text never uses.

    Args:
        source: The parts of the model.
    """
    encoder: Any = copy.deepcopy(source.encoder).cpu().float().eval()
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    _choose_attention(encoder)
    cut_positions(encoder, source.max_seq_length)
    fold_token_types(encoder)
    pooling, *head = copy.deepcopy(source.modules)
    if head and type(head[-1]).__name__ == "Normalize":  # the graph normalises by itself
        head.pop()
    modes = pooling_modes(pooling)
    modes = modes if head else modes_for_direction(modes)  # normalising takes away any length
    return SentenceGraph(encoder, (MaskedPooling(modes), *head)).cpu().float().eval()


def _choose_attention(encoder: Any) -> None:
    # Eager attention gives a fifth fewer nodes than sdpa, and no checks for NaN. Where an architecture of
    # transformers 4 cannot be changed, the graph is as fast and as exact, only longer.
    if hasattr(encoder, "set_attn_implementation"):
        with quiet():
            encoder.set_attn_implementation("eager")


def count_parameters(graph: SentenceGraph) -> int:
    """Give how many numbers the graph holds, constant rows included."""
    constants = sum(buffer.numel() for buffer in graph.buffers() if buffer.is_floating_point())
    return sum(parameter.numel() for parameter in graph.parameters()) + constants


def trace(graph: SentenceGraph, max_seq_length: int) -> onnx.ModelProto:
    """Give the graph in ONNX: int64 input_ids, attention_mask (batch, tokens), both sizes dynamic.

    It is made with torch.export rather than the TorchScript exporter: the latter is deprecated, writes twice
    the nodes, and freezes what Python decides while it traces. Both agreed with torch to 1e-6 at all sizes.

    Args:
        graph: What to trace.
        max_seq_length: The most tokens that it will be given.

    Raises:
        InputError: If torch cannot trace this architecture.
    """
    ids = torch.arange(2 * min(_EXAMPLE_TOKENS, max_seq_length)).reshape(2, -1)
    ids %= graph.encoder.config.vocab_size
    try:
        return trace_module(graph, (ids, torch.ones_like(ids)), INPUTS, OUTPUTS)
    except (torch.onnx.OnnxExporterError, RuntimeError) as error:
        name = type(graph.encoder).__name__
        raise InputError(
            f"torch.onnx cannot trace {name}; expected an encoder such as BERT, RoBERTa or MPNet"
        ) from error


def trace_module(
    module: nn.Module, example: tuple[torch.Tensor, ...], inputs: Sequence[str], outputs: Sequence[str]
) -> onnx.ModelProto:
    """Give any module in ONNX, the first two sizes of its inputs (batch, tokens, ...) dynamic.

    Args:
        module: What to trace.
        example: What it may be given.
        inputs: The names of its parameters, which become those of the graph's inputs.
        outputs: Names for what it gives.
    """
    sizes = {0: "batch", 1: "tokens"}
    with quiet(), torch.no_grad():
        program = torch.onnx.export(
            module,
            example,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=dict.fromkeys(inputs, sizes),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    model: onnx.ModelProto = cast("torch.onnx.ONNXProgram", program).model_proto
    strip(model)
    return model


def strip(model: onnx.ModelProto) -> None:
    """Take out, in place, what nobody reads: notes on nodes, and shapes in between."""
    # torch notes the Python stack of every node: half a megabyte, with paths of this machine.
    graph = model.graph
    for part in (*graph.node, *graph.input, *graph.output, *graph.initializer, graph, model):
        del part.metadata_props[:]
        part.doc_string = ""
    del graph.value_info[:]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence what libraries say about their own insides: nothing that a user could act upon."""
    loggers: list[Any] = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
