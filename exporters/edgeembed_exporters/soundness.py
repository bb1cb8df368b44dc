"""Check that a loaded model can be read as it is, or copy it in the form that exporters and trainers read."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from torch import nn

from edgeembed_exporters.model_spec import position_limit

# No sentence embedding depends on it, and transformers draws its weights at random if a checkpoint lacks them.
_UNUSED = "pooler"
_MAX_NAMES = 3


def sound_model(model: SentenceTransformer) -> SentenceTransformer:
    """Return a model in float32 that reads no more tokens than it has positions for.

    Args:
        model: The model, which is not changed.

    Returns:
        The model itself if it is so already, else a copy.

    Raises:
        InputError: If a weight is NaN or infinite.
    """
    weights = [*model.parameters(), *model.buffers()]
    if any(weight.is_floating_point() and weight.dtype != torch.float32 for weight in weights):
        model = copy.deepcopy(model).float()
    check_finite(model)
    limit = _lower_limit(model)
    if limit is None:
        return model
    model = copy_sharing_weights(model)
    first: Any = model[0]
    first.max_seq_length = limit
    return model


def copy_sharing_weights(model: SentenceTransformer) -> SentenceTransformer:
    """Return a copy of a model that shares its weights, so that prompts and limits can be changed."""
    weights = [*model.parameters(), *model.buffers()]
    made: SentenceTransformer = copy.deepcopy(model, {id(weight): weight for weight in weights})
    return made


def check_finite(model: nn.Module) -> None:
    """Raise InputError if a weight of a model is NaN or infinite, the pooler's aside."""
    counts = {name: int((~torch.isfinite(weight)).sum()) for name, weight in model.state_dict().items()}
    broken = {name: count for name, count in counts.items() if count and not is_unused(name)}
    if broken:
        places = _name_some([f"{count:,} in {name}" for name, count in broken.items()])
        raise InputError(
            f"the model's weights have {sum(broken.values()):,} NaN or infinite values: {places}; expected finite "
            "ones: use a checkpoint from before its training diverged"
        )


def check_none_missing(missing: Iterable[str], model: str) -> None:
    """Raise InputError if a checkpoint lacks weights, which transformers would draw at random, the pooler's aside.

    Args:
        missing: The names of the missing weights, as transformers reports them.
        model: The model's name, for the message.
    """
    names = sorted(name for name in missing if not is_unused(name))
    if names:
        raise InputError(
            f"{model} lacks weights of its architecture ({len(names):,}): {_name_some(names)}; expected all of them "
            "under these names: save the model itself, not a wrapper such as torch.compile's or DDP's"
        )


def is_unused(name: str) -> bool:
    """Return whether no sentence embedding depends on a weight of this name."""
    return _UNUSED in name.split(".")


def _name_some(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = [f"{len(names) - _MAX_NAMES:,} more"] if len(names) > _MAX_NAMES else []
    return ", ".join([*names[:_MAX_NAMES], *more])


def _lower_limit(model: SentenceTransformer) -> int | None:
    """Return the number of tokens that a model has positions for, if it reads more than that."""
    first: Any = model[0] if len(model) else None
    encoder = getattr(first, "auto_model", None)
    limit = None if encoder is None else position_limit(encoder)
    current = getattr(first, "max_seq_length", None)
    return limit if limit is not None and (current is None or current > limit) else None
