"""Classification heads ("Cross-architecture distillation using bidirectional CMOW embeddings", appendix A).

Each head extracts the features of one text from the encoder, and maps the features of one text, or the diffcat features
of two, to logits. The paper does not state the hidden widths; those below are ours.
"""

from typing import Any, Literal

import torch
from edgeembed_runtime.errors import InputError
from torch import nn

HeadKind = Literal["linear", "mlp", "cnn", "bilstm"]

_HIDDEN, _LSTM_HIDDEN = 512, 256
_LSTM_DROPOUT, _CNN_DROPOUT = 0.5, 0.4


class EmbeddingHead(nn.Module):
    """A linear probe or an MLP on the sentence embedding, after a layer norm without weights.

    The components of an L2-normalized embedding are near 0.05. Without the layer norm, the default initialization of
    the linear layers would make logits and gradients many times too small.

    Args:
        encoder: A sentence-transformers model.
        inputs: The number of feature vectors that are concatenated: 1, or 3 with diffcat.
        classes: The number of classes.
        hidden: Whether there is a hidden layer with a ReLU.
    """

    def __init__(self, encoder: Any, inputs: int, classes: int, *, hidden: bool) -> None:
        super().__init__()
        width = inputs * int(encoder.get_embedding_dimension())
        layers = [nn.Linear(width, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, classes)]
        self.layers = nn.Sequential(*(layers if hidden else [nn.Linear(width, classes)]))

    def features(self, encoder: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the layer-normalized sentence embeddings, float32 (batch, dimension)."""
        return self.normalize(encoder(dict(inputs))["sentence_embedding"])

    @staticmethod
    def normalize(embeddings: torch.Tensor) -> torch.Tensor:
        """Return embeddings with mean 0 and variance 1 over their dimensions, float32 (batch, dimension)."""
        return nn.functional.layer_norm(embeddings.float(), embeddings.shape[-1:])

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return logits, (batch, classes)."""
        logits: torch.Tensor = self.layers(features)
        return logits


class SentenceEmbeddingHead(nn.Module):
    """An `EmbeddingHead` as one function of the sentence embeddings of single texts, for an export.

    Args:
        head: The head; its weights are shared.
    """

    def __init__(self, head: EmbeddingHead) -> None:
        super().__init__()
        self.head = head

    def forward(self, embeddings: torch.Tensor) -> torch.Tensor:
        """Return the logits of sentence embeddings, (batch, classes)."""
        logits: torch.Tensor = self.head(self.head.normalize(embeddings))
        return logits


class CnnHead(nn.Module):
    """A 2D CNN on the sentence matrices of a CMOW student: a fourfold upsampling, then three convolutions.

    Args:
        encoder: A CMOW student without a head whose vectors, if it has any, fill square matrices.
        inputs: As for `EmbeddingHead`.
        classes: The number of classes.
    """

    def __init__(self, encoder: Any, inputs: int, classes: int) -> None:
        super().__init__()
        shape = _matrix_shape(encoder, "cnn")
        self.matrix_dim = shape.matrix_dim
        channels = inputs * (shape.width // self.matrix_dim**2)
        filters = 2 if shape.architecture == "hybrid" else 1
        self.layers = nn.Sequential(
            nn.ConvTranspose2d(channels, channels, kernel_size=4, stride=4),
            nn.Conv2d(channels, filters, kernel_size=4),
            nn.ReLU(),
            nn.Conv2d(filters, 3, kernel_size=4, stride=2),
            nn.ReLU(),
            nn.Conv2d(3, 4, kernel_size=4, stride=2),
            nn.ReLU(),
            nn.BatchNorm2d(4),
            nn.Flatten(),
            nn.Dropout(_CNN_DROPOUT),
            nn.LazyLinear(classes),
        )
        with torch.no_grad():  # sets the input width of the lazy layer
            self.layers.eval()(torch.zeros(1, channels, self.matrix_dim, self.matrix_dim))
            self.layers.train()

    def features(self, encoder: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the sentence matrices, (batch, channels, d, d)."""
        vectors: torch.Tensor = encoder[0](dict(inputs))["sentence_embedding"]
        return vectors.reshape(len(vectors), -1, self.matrix_dim, self.matrix_dim)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return logits, (batch, classes)."""
        logits: torch.Tensor = self.layers(features)
        return logits


class BiLstmHead(nn.Module):
    """A BiLSTM over the token embeddings of a CMOW student, then an MLP.

    Args:
        encoder: A CMOW student without a head.
        inputs: As for `EmbeddingHead`.
        classes: The number of classes.
    """

    def __init__(self, encoder: Any, inputs: int, classes: int) -> None:
        super().__init__()
        shape = _matrix_shape(encoder, "bilstm")
        self.lstm = nn.LSTM(shape.width, _LSTM_HIDDEN, batch_first=True, bidirectional=True)
        self.layers = nn.Sequential(
            nn.Linear(inputs * 2 * _LSTM_HIDDEN, _HIDDEN),
            nn.Dropout(_LSTM_DROPOUT),
            nn.ReLU(),
            nn.Linear(_HIDDEN, classes),
        )

    def features(self, encoder: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the last hidden states of both directions, (batch, 2 hidden)."""
        lengths = inputs["attention_mask"].sum(dim=1).clamp_min(1).cpu()
        rows = encoder[0].static_embeddings(inputs["input_ids"])
        packed = nn.utils.rnn.pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False)
        _, (states, _) = self.lstm(packed)
        return torch.cat([states[0], states[1]], dim=1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return logits, (batch, classes)."""
        logits: torch.Tensor = self.layers(features)
        return logits


def build_head(kind: HeadKind, encoder: Any, inputs: int, classes: int) -> nn.Module:
    """Return a classification head with random weights.

    Args:
        kind: "linear" or "mlp", on sentence embeddings; "cnn" or "bilstm", for CMOW students without a head.
        encoder: A sentence-transformers model.
        inputs: The number of feature vectors that are concatenated: 1, or 3 with diffcat.
        classes: The number of classes.

    Raises:
        InputError: If the encoder does not produce what the head reads.
    """
    if kind == "cnn":
        return CnnHead(encoder, inputs, classes)
    if kind == "bilstm":
        return BiLstmHead(encoder, inputs, classes)
    return EmbeddingHead(encoder, inputs, classes, hidden=kind == "mlp")


def _matrix_shape(encoder: Any, kind: str) -> Any:
    shape = getattr(encoder[0], "cmow_config", None)
    if shape is None or shape.dimension:
        raise InputError(
            f"the classifier {kind} reads matrices, which the encoder does not produce; expected a CMOW student "
            "without a head (head.kind=none): use the classifier mlp or linear"
        )
    if kind == "cnn" and shape.width % shape.matrix_dim**2:
        raise InputError(
            f"the classifier cnn reads square matrices, but the student's vectors have {shape.vector_dim} components; "
            f"expected {shape.matrix_dim**2}, as its matrices have: use the classifier mlp or linear"
        )
    return shape
