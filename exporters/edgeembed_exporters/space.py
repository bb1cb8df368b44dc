"""The name of a model's embedding space, derived from its weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Dropout, Normalize, Pooling
from torch import nn

from edgeembed_exporters.model_spec import pooling_modes
from edgeembed_exporters.soundness import is_unused

_DIGITS = 16


def embedding_space(model: SentenceTransformer) -> str:
    """Return the name of a model's own embedding space, such as "bert-384-0123456789abcdef".

    The name states the architecture, the dimension and the first 16 digits of a SHA-256 over the weights in float32,
    the pooling, and the activation functions of Dense modules with their settings. It depends neither on the path or
    the name of the model nor on the version of a library, and two models have the same name only if they compute the
    same embeddings up to their norm. Prompts and the maximum length do not count.

    Args:
        model: The model, on any device.
    """
    digest = hashlib.sha256()
    for part in sorted([*_weights(model), *_settings(model)]):
        digest.update(part)
    config: Any = getattr(getattr(model[0], "auto_model", None), "config", None)
    kind = getattr(config, "model_type", None) or type(model[0]).__name__.lower()
    return f"{kind}-{int(model.get_embedding_dimension())}-{digest.hexdigest()[:_DIGITS]}"


def _weights(model: SentenceTransformer) -> Iterator[bytes]:
    """Yield a digest of each weight. Names are left out, since they differ between versions of a library."""
    for name, weight in model.named_parameters():
        if not is_unused(name):
            values = weight.detach().to("cpu", torch.float32).contiguous().numpy().astype("<f4", copy=False)
            shape = repr(tuple(values.shape)).encode()
            yield hashlib.sha256(shape + hashlib.sha256(values).digest()).digest()


def _settings(model: SentenceTransformer) -> Iterator[bytes]:
    """Yield a digest of each module after the first that changes the direction of embeddings."""
    modules: list[nn.Module] = [module for module in list(model)[1:] if not isinstance(module, Dropout)]
    if modules and isinstance(modules[-1], Normalize):
        modules.pop()
    for place, module in enumerate(modules):
        settings: list[object] = [place, type(module).__name__]
        if isinstance(module, Pooling):
            settings += pooling_modes(module)
        elif isinstance(module, Dense):
            settings += _activation(module.activation_function)
            if getattr(module, "use_residual", False):  # since sentence-transformers 6
                settings.append("residual")
        yield hashlib.sha256(repr(settings).encode()).digest()


def _activation(function: object) -> list[object]:
    """Return the name of an activation function, and its settings unless they are those of its class."""
    if not isinstance(function, nn.Module):  # a function, such as torch.tanh
        return [getattr(function, "__name__", type(function).__name__)]
    name = type(function).__name__
    try:
        default = repr(type(function)())
    except TypeError:  # it has no defaults
        default = None
    return [name] if repr(function) == default else [name, repr(function)]
