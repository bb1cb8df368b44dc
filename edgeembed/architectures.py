"""Transformer architectures that students can be built from: where each keeps its layers, sizes and dropout rates."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from edgeembed_runtime.errors import InputError
from torch import nn
from transformers import PreTrainedModel


@dataclass(frozen=True)
class FeedForwardPaths:
    """Attribute paths, within a layer, of the two linear layers of its feed-forward network (FFN).

    Attributes:
        up: Linear layer from the hidden size to the intermediate size.
        down: Linear layer from the intermediate size back to the hidden size.
    """

    up: str
    down: str


@dataclass(frozen=True)
class EncoderArchitecture:
    """Attribute and setting names of one architecture of transformers.

    Attributes:
        layers: Path of the list of layers within the encoder.
        dropouts: Names of the dropout rates in the configuration.
        intermediate: Name of the FFN's intermediate size in the configuration.
        feed_forward: Paths of the FFN within a layer.
        position_offset: Position embeddings that no token uses. RoBERTa and its descendants number positions from the
            padding token's id + 1.
    """

    layers: str = "encoder.layer"
    dropouts: tuple[str, ...] = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    intermediate: str = "intermediate_size"
    feed_forward: FeedForwardPaths = FeedForwardPaths("intermediate.dense", "output.dense")
    position_offset: int = 0


_ROBERTA = EncoderArchitecture(position_offset=2)
_ARCHITECTURES = {
    "bert": EncoderArchitecture(),
    "camembert": _ROBERTA,
    "distilbert": EncoderArchitecture(
        "transformer.layer", ("dropout", "attention_dropout"), "hidden_dim", FeedForwardPaths("ffn.lin1", "ffn.lin2")
    ),
    "mpnet": _ROBERTA,
    "roberta": _ROBERTA,
    "roberta-prelayernorm": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}


def encoder_architecture(encoder: nn.Module) -> EncoderArchitecture:
    """Return the architecture of an encoder by its configuration's `model_type`.

    Args:
        encoder: A transformers encoder.

    Raises:
        InputError: If students cannot be built from this architecture.
    """
    model_type = getattr(getattr(encoder, "config", None), "model_type", None)
    if model_type not in _ARCHITECTURES:
        raise InputError(
            f"the teacher is a {type(encoder).__name__}; expected one of these architectures: "
            f"{', '.join(_ARCHITECTURES)}"
        )
    return _ARCHITECTURES[model_type]


def encoder_layers(encoder: PreTrainedModel) -> nn.ModuleList:
    """Return an encoder's layers, first to last."""
    layers: nn.ModuleList = attrgetter(encoder_architecture(encoder).layers)(encoder)
    return layers


def max_positions(encoder: PreTrainedModel) -> int:
    """Return the maximum number of tokens of a text."""
    return int(encoder.config.max_position_embeddings) - encoder_architecture(encoder).position_offset


def ffn_width(encoder: PreTrainedModel) -> int:
    """Return the intermediate size of an encoder's feed-forward networks."""
    return int(getattr(encoder.config, encoder_architecture(encoder).intermediate))


def choose_attention_heads(config: Any, hidden_size: int, requested: int = 0) -> int:
    """Return the number of attention heads of layers with another hidden size; 0 if there is no valid number.

    Args:
        config: Configuration of the encoder that the layers are derived from.
        hidden_size: New hidden size.
        requested: Requested number; 0 to keep the width of a head or else the number of heads.
    """
    if requested:
        return requested if hidden_size % requested == 0 else 0
    heads = int(config.num_attention_heads)
    head_width = int(config.hidden_size) // heads
    if hidden_size % head_width == 0:
        return hidden_size // head_width
    return heads if hidden_size % heads == 0 else 0


def resized_config(
    encoder: PreTrainedModel,
    *,
    layers: int,
    hidden_size: int,
    dropout: float,
    intermediate_size: int = 0,
    attention_heads: int = 0,
) -> Any:
    """Return a copy of an encoder's configuration with other sizes.

    Args:
        encoder: The encoder.
        layers: Number of layers.
        hidden_size: Hidden size.
        dropout: Every dropout rate.
        intermediate_size: Intermediate size of the FFN; 0 to keep its ratio to `hidden_size`.
        attention_heads: Number of attention heads; 0 to keep the width of a head or else the number of heads.
    """
    architecture, config = encoder_architecture(encoder), encoder.config
    resized = type(config).from_dict(config.to_dict())
    resized.num_hidden_layers = layers
    if attention_heads or hidden_size != config.hidden_size:
        resized.hidden_size = hidden_size
        resized.num_attention_heads = choose_attention_heads(config, hidden_size, attention_heads)
    proportional = getattr(config, architecture.intermediate) * hidden_size // config.hidden_size
    setattr(resized, architecture.intermediate, intermediate_size or proportional)
    for name in architecture.dropouts:
        setattr(resized, name, dropout)
    return resized
