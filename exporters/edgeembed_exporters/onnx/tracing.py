"""Trace a model to ONNX: token ids in, a normalized sentence embedding out."""

import contextlib
import copy
import io
import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import onnx
import torch
from edgeembed_runtime.errors import InputError, one_line
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import nn

from edgeembed_exporters.cmow import MatrixEncoder
from edgeembed_exporters.model_spec import ModelSpec, first_position, pooling_modes, position_tables
from edgeembed_exporters.modules import MaskedPooling, modes_for_direction

# The first opset that torch's exporter writes without conversion; onnxruntime supports it since 1.14.
OPSET = 18
INPUTS = ("input_ids", "attention_mask")
# optimum and transformers.js read the token embeddings, by this name; fastembed and our runtime read the other output.
OUTPUTS = ("last_hidden_state", "sentence_embedding")
_EXAMPLE_TOKENS = 8
_EPSILON = 1e-12
_MAX_REASON = 200
_LOGGERS = ("torch.onnx", "torch.export", "torch.fx", "onnxscript", "onnx_ir", "transformers", "optimum")


class SentenceGraph(nn.Module):
    """An encoder, its pooling, head and normalization as one function of two tensors.

    Embeddings are normalized even if the model has no Normalize module: those of a bundle always have length 1.

    Args:
        encoder: A transformers encoder, or a module with its interface.
        modules: The modules after the encoder: a pooling, then modules of sentence-transformers.
    """

    encoder: Any

    def __init__(self, encoder: nn.Module, modules: tuple[nn.Module, ...]) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.ModuleList(modules)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return float32 embeddings of tokens (batch, tokens, width) and of sentences (batch, dimension).

        The token embeddings are computed in any case, and sentence-transformers and transformers.js read them.
        """
        tokens = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        features = {"token_embeddings": tokens, "attention_mask": attention_mask}
        for module in self.head:
            features = module(features)
        return tokens, normalize_rows(features["sentence_embedding"])


def normalize_rows(vectors: torch.Tensor) -> torch.Tensor:
    """Return vectors (rows, width) with length 1, like functional.normalize but with two nodes fewer."""
    norms: torch.Tensor = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return vectors / norms.clamp_min(_EPSILON)


def build_graph(spec: ModelSpec) -> SentenceGraph:
    """Return a model's graph as a torch module: a copy, without the parts that a single text never uses.

    Args:
        spec: The parts of the model.
    """
    encoder: Any = copy.deepcopy(spec.encoder).cpu().float().eval()
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    if isinstance(encoder, MatrixEncoder):
        encoder.limit_length(spec.max_seq_length)
    _use_eager_attention(encoder)
    prune_positions(encoder, spec.max_seq_length)
    fold_token_types(encoder)
    pooling, *head = copy.deepcopy(spec.modules)
    if head and isinstance(head[-1], Normalize):  # the graph normalizes in any case
        head.pop()
    modes = pooling_modes(pooling)
    modes = modes if head else modes_for_direction(modes)  # the length is normalized away
    return SentenceGraph(encoder, (MaskedPooling(modes), *head)).cpu().float().eval()


def count_parameters(graph: nn.Module) -> int:
    """Return the number of weights of a graph, including constant rows."""
    constants = sum(buffer.numel() for buffer in graph.buffers() if buffer.is_floating_point())
    return sum(parameter.numel() for parameter in graph.parameters()) + constants


def trace(graph: SentenceGraph, max_seq_length: int) -> onnx.ModelProto:
    """Trace a graph to ONNX with int64 inputs input_ids and attention_mask (batch, tokens), both sizes dynamic.

    It uses torch.export, not the TorchScript exporter, which is deprecated, writes twice as many nodes, and makes
    Python's decisions during tracing constant. Both agreed with torch to 1e-6 at all sizes.

    Args:
        graph: The graph.
        max_seq_length: Maximum number of tokens of its inputs.

    Raises:
        InputError: If torch cannot trace this architecture.
    """
    ids = torch.arange(2 * min(_EXAMPLE_TOKENS, max_seq_length)).reshape(2, -1)
    ids %= graph.encoder.config.vocab_size
    try:
        return trace_module(graph, (ids, torch.ones_like(ids)), INPUTS, OUTPUTS)
    except (torch.onnx.OnnxExporterError, RuntimeError) as error:
        raise untraceable(graph.encoder, graph.head, error) from error


def untraceable(encoder: nn.Module, head: Iterable[nn.Module], error: BaseException) -> InputError:
    """Return the error for a model that torch cannot trace, with the parts of the model and torch's first cause."""
    modules = [module for part in head for module in part.modules() if not list(module.children())]
    names = dict.fromkeys(type(module).__name__ for module in [encoder, *modules])
    while error.__cause__ is not None:
        error = error.__cause__
    reason = one_line((str(error).splitlines() or [type(error).__name__])[0])[:_MAX_REASON]
    return InputError(
        f"torch.onnx cannot trace the model ({', '.join(names)}): {reason}; expected an encoder such as BERT, RoBERTa "
        "or MPNet, and usual layers and activation functions after it"
    )


def trace_module(
    module: nn.Module, example: tuple[torch.Tensor, ...], inputs: Sequence[str], outputs: Sequence[str]
) -> onnx.ModelProto:
    """Trace any module to ONNX, with the first two sizes of its inputs (batch, tokens, ...) dynamic.

    Args:
        module: The module.
        example: An example of its arguments.
        inputs: The names of its parameters, which become the names of the graph's inputs.
        outputs: The names of the graph's outputs.
    """
    sizes = {0: "batch", 1: "tokens"}
    with quiet(), contextlib.redirect_stderr(io.StringIO()), torch.no_grad():  # torch prints graphs that it rejects
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
    remove_metadata(model)
    return model


def remove_metadata(model: onnx.ModelProto) -> None:
    """Remove metadata, documentation and intermediate shapes, in place."""
    # torch records the Python stack of every node: half a megabyte, with paths of this machine.
    graph = model.graph
    for part in (*graph.node, *graph.input, *graph.output, *graph.initializer, graph, model):
        del part.metadata_props[:]
        part.doc_string = ""
    del graph.value_info[:]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence the warnings of libraries about their own code, which a user cannot act on."""
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


def _use_eager_attention(encoder: Any) -> None:
    # Eager attention has a fifth fewer nodes than sdpa, and no checks for NaN. If an architecture of transformers 4
    # does not support it, the graph is as fast and as exact, only longer.
    if hasattr(encoder, "set_attn_implementation"):
        with quiet():
            encoder.set_attn_implementation("eager")


class ConstantRow(nn.Module):
    """An embedding table with one row.

    Args:
        row: float (dim,).
    """

    row: torch.Tensor

    def __init__(self, row: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("row", row.clone())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the row in a shape that broadcasts over ids (batch, tokens)."""
        return self.row.reshape((1,) * ids.ndim + (-1,))


def prune_positions(encoder: nn.Module, max_seq_length: int) -> None:
    """Remove the positions that no text within the limit reaches, in place."""
    for table in position_tables(encoder):
        rows = min(table.num_embeddings, max_seq_length + first_position(table))
        table.weight = nn.Parameter(table.weight.detach()[:rows].clone(), requires_grad=False)
        table.num_embeddings = rows
        if hasattr(encoder.config, "max_position_embeddings"):
            encoder.config.max_position_embeddings = rows


def fold_token_types(encoder: nn.Module) -> None:
    """Replace the table of token types by its first row, in place, because a single text only has type 0."""
    tables = [(name, module) for name, module in encoder.named_modules() if isinstance(module, nn.Embedding)]
    for name, table in tables:
        parent, _, attribute = name.rpartition(".")
        if attribute == "token_type_embeddings":
            setattr(encoder.get_submodule(parent), attribute, ConstantRow(table.weight.detach()[0]))
