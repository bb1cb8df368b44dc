"""Where encoders of other architectures keep what a student takes of them."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from edgeembed_runtime.errors import InputError
from torch import nn
from transformers import PreTrainedModel

from edgeembed.students.feed_forward import FeedForward

_BERTS = FeedForward("intermediate.dense", "output.dense")


@dataclass(frozen=True)
class EncoderKind:
    """One architecture.

    Attributes:
        layers: Path of its list of layers within the encoder.
        dropouts: The settings that say how much is dropped while training.
        intermediate: The setting that says how wide the feed-forward layers are.
        feed_forward: Where a layer keeps them.
        position_offset: Positions that no token has: RoBERTa's descendants begin after the padding.
    """

    layers: str = "encoder.layer"
    dropouts: tuple[str, ...] = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    intermediate: str = "intermediate_size"
    feed_forward: FeedForward = _BERTS
    position_offset: int = 0


_ROBERTA = EncoderKind(position_offset=2)
_KINDS = {
    "bert": EncoderKind(),
    "camembert": _ROBERTA,
    "distilbert": EncoderKind(
        "transformer.layer", ("dropout", "attention_dropout"), "hidden_dim", FeedForward("ffn.lin1", "ffn.lin2")
    ),
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


def heads_for(config: Any, hidden_size: int, wanted: int = 0) -> int:
    """Give how many attention heads layers of another width have; 0 where they cannot be had.

    Args:
        config: The configuration of the encoder that they are made from.
        hidden_size: Their width.
        wanted: How many there are to be; 0 for as many as keep their width, or else their number.
    """
    if wanted:
        return wanted if hidden_size % wanted == 0 else 0
    heads = int(config.num_attention_heads)
    width = int(config.hidden_size) // heads
    if hidden_size % width == 0:
        return hidden_size // width
    return heads if hidden_size % heads == 0 else 0


def neurons_of(encoder: PreTrainedModel) -> int:
    """Give how wide an encoder's feed-forward layers are."""
    return int(getattr(encoder.config, encoder_kind(encoder).intermediate))


def reshaped(
    encoder: PreTrainedModel,
    *,
    layers: int,
    hidden_size: int,
    dropout: float,
    intermediate_size: int = 0,
    attention_heads: int = 0,
) -> Any:
    """Give a copy of an encoder's configuration with other sizes.

    Args:
        encoder: The encoder.
        layers: How many layers.
        hidden_size: Width of a token's vector within the encoder.
        dropout: How much is dropped while training.
        intermediate_size: Width of the feed-forward layers; 0 for their ratio to `hidden_size` as it is.
        attention_heads: How many; 0 for as many as keep their width, or else their number.
    """
    kind, config = encoder_kind(encoder), encoder.config
    copied = type(config).from_dict(config.to_dict())
    copied.num_hidden_layers = layers
    if attention_heads or hidden_size != config.hidden_size:
        copied.hidden_size = hidden_size
        copied.num_attention_heads = heads_for(config, hidden_size, attention_heads)
    in_ratio = neurons_of(encoder) * hidden_size // config.hidden_size
    setattr(copied, kind.intermediate, intermediate_size or in_ratio)
    for name in kind.dropouts:
        setattr(copied, name, dropout)
    return copied
