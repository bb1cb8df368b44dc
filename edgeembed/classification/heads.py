"""Classification heads ("Cross-architecture distillation using bidirectional CMOW embeddings", appendices A and C).

Each head maps one text, or the two texts of a pair, to logits. The numbers of parameters in tables 12 and 13 of the
paper determine the widths and filters that its text leaves out.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from edgeembed_runtime.errors import InputError
from torch import nn

HeadKind = Literal["linear", "mlp", "cnn", "bilstm"]
TokenizedTexts = dict[str, torch.Tensor]
"""A batch of tokenized texts: `input_ids` and `attention_mask`, int64 (batch, tokens)."""

_MLP_HIDDEN = 1000
_LSTM_DROPOUT, _CNN_DROPOUT = 0.5, 0.4


class EmbeddingHead(nn.Module):
    """A linear probe or an MLP on the sentence embedding.

    Both contain a layer norm: of the probe's input, and of the MLP's hidden layer before its ReLU. The paper counts the
    parameters of such a layer without naming its kind.

    Args:
        encoder: A sentence-transformers model.
        inputs: The number of feature vectors that are concatenated: 1, or 3 with DiffCat.
        classes: The number of classes.
        hidden: Whether there is a hidden layer.
    """

    def __init__(self, encoder: Any, inputs: int, classes: int, *, hidden: bool) -> None:
        super().__init__()
        width = inputs * int(encoder.get_embedding_dimension())
        layers: list[nn.Module] = [nn.LayerNorm(width), nn.Linear(width, classes)]
        if hidden:
            norm = nn.LayerNorm(_MLP_HIDDEN)
            layers = [nn.Linear(width, _MLP_HIDDEN), norm, nn.ReLU(), nn.Linear(_MLP_HIDDEN, classes)]
        self.layers = nn.Sequential(*layers)
        """Maps the sentence embedding of one text, or the DiffCat features of two, to logits."""

    def forward(self, encoder: Any, texts: Sequence[TokenizedTexts]) -> torch.Tensor:
        """Return logits, float32 (batch, classes)."""
        embeddings = [encoder(dict(batch))["sentence_embedding"].float() for batch in texts]
        logits: torch.Tensor = self.layers(_combined(embeddings))
        return logits


class CnnHead(nn.Module):
    """A 2D CNN on the sentence matrices of a CMOW student: a fourfold upsampling, then three convolutions.

    For c matrices (one for each direction of multiplication and one for the vector; three times as many with DiffCat)
    the convolutions have c, c + 2 and c + 2 filters of sizes 4, 3 and 3.

    Args:
        encoder: A CMOW student without a head whose vectors, if it has any, fill square matrices.
        inputs: As for `EmbeddingHead`.
        classes: The number of classes.
    """

    def __init__(self, encoder: Any, inputs: int, classes: int) -> None:
        super().__init__()
        shape = _matrix_shape(encoder, "cnn")
        self.matrix_dim = _square_side(shape)
        channels = inputs * (shape.width // self.matrix_dim**2)
        side = 4 * self.matrix_dim - 3
        for _ in range(2):
            side = (side - 3) // 2 + 1
        if side < 1:
            raise InputError(
                f"the classifier cnn reads matrices of 3 x 3 or more, but the student's are {self.matrix_dim} x "
                f"{self.matrix_dim}: use the classifier mlp or linear"
            )
        filters = channels + 2
        self.layers = nn.Sequential(
            nn.ConvTranspose2d(channels, channels, kernel_size=4, stride=4),
            nn.Conv2d(channels, channels, kernel_size=4),
            nn.ReLU(),
            nn.Conv2d(channels, filters, kernel_size=3, stride=2),
            nn.ReLU(),
            nn.Conv2d(filters, filters, kernel_size=3, stride=2),
            nn.ReLU(),
            nn.BatchNorm2d(filters),
            nn.Flatten(),
            nn.Dropout(_CNN_DROPOUT),
            nn.Linear(filters * side**2, classes),
        )

    def forward(self, encoder: Any, texts: Sequence[TokenizedTexts]) -> torch.Tensor:
        """Return logits, float32 (batch, classes)."""
        matrices = [
            encoder[0](dict(batch))["sentence_embedding"].unflatten(1, (-1, self.matrix_dim, self.matrix_dim))
            for batch in texts
        ]
        logits: torch.Tensor = self.layers(_combined(matrices))
        return logits


class BiLstmHead(nn.Module):
    """A BiLSTM over the contextual token embeddings of a CMOW student, then an MLP.

    The hidden state of each direction is as wide as the input, as in table 13. With DiffCat, the tokens of two texts
    are combined position by position; the shorter text ends in zeros.

    Args:
        encoder: A CMOW student without a head.
        inputs: As for `EmbeddingHead`.
        classes: The number of classes.
    """

    def __init__(self, encoder: Any, inputs: int, classes: int) -> None:
        super().__init__()
        _matrix_shape(encoder, "bilstm")
        width = inputs * int(encoder[0].contextual_width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.layers = nn.Sequential(
            nn.Linear(2 * width, width), nn.Dropout(_LSTM_DROPOUT), nn.ReLU(), nn.Linear(width, classes)
        )

    def forward(self, encoder: Any, texts: Sequence[TokenizedTexts]) -> torch.Tensor:
        """Return logits, float32 (batch, classes)."""
        longest = max(batch["input_ids"].shape[1] for batch in texts)
        tokens, lengths = [], []
        for batch in texts:
            mask = batch["attention_mask"]
            embeddings = encoder[0].contextual_embeddings(batch["input_ids"], mask) * mask[..., None]
            tokens.append(nn.functional.pad(embeddings, (0, 0, 0, longest - mask.shape[1])).transpose(1, 2))
            lengths.append(mask.sum(dim=1))
        combined = _combined(tokens).transpose(1, 2)
        length = torch.stack(lengths).amax(dim=0).clamp_min(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(combined, length, batch_first=True, enforce_sorted=False)
        _, (states, _) = self.lstm(packed)
        logits: torch.Tensor = self.layers(torch.cat([states[0], states[1]], dim=1))
        return logits


def diffcat(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Concatenate two texts' features u, v with their absolute difference: u, |u - v|, v.

    Source: DiffCat, "Cross-architecture distillation using bidirectional CMOW embeddings", section 2.3.

    Args:
        first: Features u, (batch, channels, ...).
        second: Features v, likewise.

    Returns:
        (batch, 3 channels, ...).
    """
    return torch.cat([first, (first - second).abs(), second], dim=1)


def build_head(kind: HeadKind, encoder: Any, inputs: int, classes: int) -> nn.Module:
    """Return a classification head with random weights: (encoder, tokenized texts) -> logits.

    Args:
        kind: "linear" or "mlp", on sentence embeddings; "cnn" or "bilstm", for CMOW students without a head.
        encoder: A sentence-transformers model.
        inputs: The number of feature vectors that are concatenated: 1, or 3 with DiffCat.
        classes: The number of classes.

    Raises:
        InputError: If the encoder does not produce what the head reads.
    """
    if kind == "cnn":
        return CnnHead(encoder, inputs, classes)
    if kind == "bilstm":
        return BiLstmHead(encoder, inputs, classes)
    return EmbeddingHead(encoder, inputs, classes, hidden=kind == "mlp")


def _combined(features: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the features of one text as they are, and those of two texts combined by DiffCat."""
    return diffcat(*features) if len(features) == 2 else features[0]


def _matrix_shape(encoder: Any, kind: str) -> Any:
    shape = getattr(encoder[0], "cmow_config", None)
    if shape is None or shape.dimension:
        raise InputError(
            f"the classifier {kind} reads matrices, which the encoder does not produce; expected a CMOW student "
            "without a head (head.kind=none): use the classifier mlp or linear"
        )
    return shape


def _square_side(shape: Any) -> int:
    """Return the number of rows of the square matrices that a student's embedding consists of."""
    side = math.isqrt(shape.vector_dim) if shape.architecture == "cbow" else int(shape.matrix_dim)
    if shape.width % side**2:
        expected = "a square number" if shape.architecture == "cbow" else f"{side**2}, as its matrices have"
        raise InputError(
            f"the classifier cnn reads square matrices, but the student's vectors have {shape.vector_dim} components; "
            f"expected {expected}: use the classifier mlp or linear"
        )
    return side
