"""An encoder's weights as transformers stores them, beside the graph, for those who run torch."""

from pathlib import Path
from typing import Any

import torch
from edgeembed_runtime.errors import InputError
from transformers import PreTrainedModel
from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

from edgeembed_exporters.source import Source

# Sentence vectors are pooled from the tokens', so what transformers' own pooler holds is never read.
_UNREAD = "pooler."


def check_plain(encoder: Any) -> None:
    """Refuse an encoder that transformers would not build again from its configuration.

    Raises:
        InputError: If it is another class than transformers', or a part of it was exchanged; the part is named.
    """
    name = type(encoder).__name__
    if not isinstance(encoder, PreTrainedModel):
        raise InputError(f"torch weights were asked for, and the encoder is a {name}; expected one of transformers")
    with torch.device("meta"):
        plain = _shapes(type(encoder)(encoder.config))
    given = _shapes(encoder)
    odd = [key for key in given.keys() | plain.keys() if given.get(key) != plain.get(key)]
    if odd := sorted(key for key in odd if not key.startswith(_UNREAD)):
        raise InputError(
            f"torch weights were asked for, and {odd[0]} is not as in {name} of transformers; "
            "expected an encoder that transformers builds from its configuration: load this one from its own folder"
        )


def write_torch_weights(source: Source, folder: Path) -> None:
    """Write model.safetensors, as large as the encoder in its own precision.

    Args:
        source: The parts of the model.
        folder: The bundle's folder, whose config.json is written over.
    """
    shown = is_progress_bar_enabled()
    disable_progress_bar()
    try:
        source.encoder.save_pretrained(folder)
    finally:
        if shown:
            enable_progress_bar()


def _shapes(encoder: Any) -> dict[str, tuple[int, ...]]:
    return {key: tuple(values.shape) for key, values in encoder.state_dict().items()}
