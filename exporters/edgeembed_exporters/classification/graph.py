"""The graph of a classifier: token ids in, logits out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
import torch
from edgeembed_runtime.pipeline import Text
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import nn

from edgeembed_exporters.model_spec import ModelSpec, pooling_modes
from edgeembed_exporters.modules import MaskedPooling
from edgeembed_exporters.onnx.tracing import INPUTS, build_graph, normalize_rows, trace_module, untraceable

LOGITS = "logits"
_EXAMPLE_TOKENS = 8


@dataclass(frozen=True)
class ClassifierModel:
    """A classifier to export.

    Attributes:
        encoder: The encoder, on the CPU.
        head: Maps sentence embeddings, float32 (batch, dimension), to logits, (batch, labels).
        labels: The names of the labels, in the order of the logits.
        is_pairs: Whether it reads pairs of texts, tokenized as one sequence.
        predict_proba: Returns the probabilities of texts or pairs, float32 (texts, labels): the reference for the gate.
    """

    encoder: SentenceTransformer
    head: nn.Module
    labels: tuple[str, ...]
    is_pairs: bool
    predict_proba: Callable[[Sequence[Text]], npt.NDArray[np.float32]]


class ClassifierGraph(nn.Module):
    """Encoder, pooling, the encoder's own head, and the classification head as one function of two tensors.

    Args:
        spec: The parts of the encoder.
        head: The classification head.
    """

    def __init__(self, spec: ModelSpec, head: nn.Module) -> None:
        super().__init__()
        pooling, *modules = copy.deepcopy(spec.modules)
        self.encoder = build_graph(spec).encoder
        self.modules_after = nn.ModuleList([MaskedPooling(pooling_modes(pooling)), *modules])
        self.head = copy.deepcopy(head)
        self.cpu().float().eval()

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return logits, float32 (batch, labels)."""
        tokens = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        features = {"token_embeddings": tokens, "attention_mask": attention_mask}
        for module in self.modules_after:
            if isinstance(module, Normalize):  # as the graphs of encoders do, with fewer nodes
                features = {**features, "sentence_embedding": normalize_rows(features["sentence_embedding"])}
            else:
                features = module(features)
        logits: torch.Tensor = self.head(features["sentence_embedding"])
        return logits


def trace_classifier(graph: ClassifierGraph, max_seq_length: int) -> onnx.ModelProto:
    """Return a classifier's graph in ONNX: int64 input_ids, attention_mask (batch, tokens) -> float32 logits.

    Args:
        graph: The graph.
        max_seq_length: Maximum number of tokens that it gets.

    Raises:
        InputError: If torch cannot trace it.
    """
    ids = torch.arange(2 * min(_EXAMPLE_TOKENS, max_seq_length)).reshape(2, -1)
    ids %= int(graph.encoder.config.vocab_size)
    try:
        return trace_module(graph, (ids, torch.ones_like(ids)), INPUTS, (LOGITS,))
    except (torch.onnx.OnnxExporterError, RuntimeError) as error:
        raise untraceable(graph.encoder, [graph.modules_after, graph.head], error) from error
