"""Classifiers on top of an encoder ("Cross-architecture distillation using bidirectional CMOW embeddings", appendix A).

Each gives a text's features, of any shape behind its channels, and classes of what one or three of them together say.
The paper leaves hidden widths open; ours are below.
"""

from typing import Any

import torch
from edgeembed_runtime.errors import InputError
from torch import nn

from edgeembed.tasks.settings import ClassifierKind

_HIDDEN, _LSTM_HIDDEN = 512, 256
_LSTM_DROPOUT, _CNN_DROPOUT = 0.5, 0.4


class OfVectors(nn.Module):
    """Linear probe or MLP on the sentence's embedding, normalized to mean 0 and variance 1 over its dimensions.

    The components of an embedding of unit length are near 0.05, for which the layers' initialization is not made:
    logits and gradients would start many times too small.
    """

    def __init__(self, encoder: Any, texts: int, classes: int, *, hidden: bool) -> None:
        super().__init__()
        width = texts * int(encoder.get_embedding_dimension())
        layers = [nn.Linear(width, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, classes)]
        self.layers = nn.Sequential(*(layers if hidden else [nn.Linear(width, classes)]))

    def features(self, encoder: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the sentences' normalized embeddings, float32 (batch, dimension)."""
        embeddings: torch.Tensor = encoder(dict(inputs))["sentence_embedding"]
        return nn.functional.layer_norm(embeddings.float(), embeddings.shape[-1:])

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Give logits, (batch, classes)."""
        logits: torch.Tensor = self.layers(features)
        return logits


class OfMatrices(nn.Module):
    """2D-CNN on the sentence's matrices: they are widened fourfold, and read by three convolutions."""

    def __init__(self, encoder: Any, texts: int, classes: int) -> None:
        super().__init__()
        shape = _matrix_shape(encoder, "cnn")
        self.side = shape.matrix_dim
        channels = texts * (shape.width // self.side**2)
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
        with torch.no_grad():
            self.layers.eval()(torch.zeros(1, channels, self.side, self.side))
            self.layers.train()

    def features(self, encoder: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Give the sentences' matrices, (batch, channels, d, d)."""
        vectors: torch.Tensor = encoder[0](dict(inputs))["sentence_embedding"]
        return vectors.reshape(len(vectors), -1, self.side, self.side)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Give logits, (batch, classes)."""
        logits: torch.Tensor = self.layers(features)
        return logits


class OfTokens(nn.Module):
    """BiLSTM over the tokens' embeddings, then an MLP."""

    def __init__(self, encoder: Any, texts: int, classes: int) -> None:
        super().__init__()
        shape = _matrix_shape(encoder, "bilstm")
        self.lstm = nn.LSTM(shape.width, _LSTM_HIDDEN, batch_first=True, bidirectional=True)
        self.layers = nn.Sequential(
            nn.Linear(texts * 2 * _LSTM_HIDDEN, _HIDDEN),
            nn.Dropout(_LSTM_DROPOUT),
            nn.ReLU(),
            nn.Linear(_HIDDEN, classes),
        )

    def features(self, encoder: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Give the last states of both directions, (batch, 2 hidden)."""
        lengths = inputs["attention_mask"].sum(dim=1).clamp_min(1).cpu()
        rows = encoder[0].token_rows(inputs["input_ids"])
        packed = nn.utils.rnn.pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False)
        _, (states, _) = self.lstm(packed)
        return torch.cat([states[0], states[1]], dim=1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Give logits, (batch, classes)."""
        logits: torch.Tensor = self.layers(features)
        return logits


def build_classifier(kind: ClassifierKind, encoder: Any, texts: int, classes: int) -> nn.Module:
    """Give a classifier of random weights.

    Args:
        kind: Which.
        encoder: A sentence-transformer; for `cnn` and `bilstm` a matrix student without a head.
        texts: Of how many texts features are put together: 3 with DiffCat, which adds the difference, else 1.
        classes: How many classes there are.

    Raises:
        InputError: If the encoder gives nothing that it could read.
    """
    if kind == "cnn":
        return OfMatrices(encoder, texts, classes)
    if kind == "bilstm":
        return OfTokens(encoder, texts, classes)
    return OfVectors(encoder, texts, classes, hidden=kind == "mlp")


def _matrix_shape(encoder: Any, kind: str) -> Any:
    shape = getattr(encoder[0], "shape", None)
    if shape is None or shape.dimension:
        raise InputError(
            f"the classifier {kind} reads matrices, which the encoder does not give; expected a matrix student without "
            "a head (head.kind=none), or the classifier mlp"
        )
    if kind == "cnn" and shape.width % shape.matrix_dim**2:
        raise InputError(
            f"the classifier cnn reads squares, and the student's vectors have {shape.vector_dim} numbers; expected "
            f"{shape.matrix_dim**2}, as its matrices have"
        )
    return shape
