"""Where encoders of other architectures keep what a student takes of them."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from edgeembed_runtime.errors import InputError
from torch import nn
from transformers import PreTrainedModel


@dataclass(frozen=True)
class EncoderKind:
    """One architecture.

    Attributes:
        layers: Path of its list of layers within the encoder.
        depth: The setting of its configuration that tells how many there are.
        dropouts: The settings that say how much is dropped while training.
        position_offset: Positions that no token has: RoBERTa's descendants begin after the padding.
    """

    layers: str = "encoder.layer"
    depth: str = "num_hidden_layers"
    dropouts: tuple[str, ...] = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    position_offset: int = 0


_BERT = EncoderKind()
_ROBERTA = EncoderKind(position_offset=2)
_KINDS = {
    "bert": _BERT,
    "camembert": _ROBERTA,
    "distilbert": EncoderKind("transformer.layer", "n_layers", ("dropout", "attention_dropout")),
    "mpnet": _ROBERTA,
    "roberta": _ROBERTA,
    "roberta-prelayernorm": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}


def encoder_kind(encoder: nn.Module) -> EncoderKind:
    """Find out about an encoder.

    Args:
        encoder: A transformers encoder.

    Raises:
        InputError: If students cannot be made of its architecture; the message names it and those that can.
    """
    kind = getattr(getattr(encoder, "config", None), "model_type", None)
    if kind not in _KINDS:
        raise InputError(
            f"the teacher is a {type(encoder).__name__}; expected one of these architectures: {', '.join(_KINDS)}"
        )
    return _KINDS[kind]


def layers_of(encoder: PreTrainedModel) -> nn.ModuleList:
    """Give the list of an encoder's layers."""
    layers: nn.ModuleList = attrgetter(encoder_kind(encoder).layers)(encoder)
    return layers


def positions_of(encoder: PreTrainedModel) -> int:
    """Give how many tokens a text may have."""
    return int(encoder.config.max_position_embeddings) - encoder_kind(encoder).position_offset


def reshaped(config: Any, encoder: PreTrainedModel, *, layers: int, dropout: float) -> Any:
    """Give a copy of an encoder's configuration with another depth and dropout.

    Args:
        config: The configuration.
        encoder: The encoder that it is of.
        layers: How many layers.
        dropout: How much is dropped while training.
    """
    kind = encoder_kind(encoder)
    copied = type(config).from_dict(config.to_dict())
    for name, value in {kind.depth: layers, **dict.fromkeys(kind.dropouts, dropout)}.items():
        setattr(copied, name, value)
    return copied
