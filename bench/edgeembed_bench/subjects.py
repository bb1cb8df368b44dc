"""What the bench measures: an encoder, how it is loaded, and the Python that it lives in."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from edgeembed_runtime.errors import InputError

Adapter = Literal[
    "bundle",
    "sentence-transformer",
    "sentence-transformer-onnx",
    "onnx",
    "model2vec",
    "fastembed",
    "function",
    "nothing",
]
ADAPTERS: tuple[Adapter, ...] = get_args(Adapter)

# What counts as a subject's import, in the cold start: the rest of what it needs is imported as it loads.
_IMPORTS: dict[str, tuple[str, ...]] = {
    "bundle": ("edgeembed_runtime.encoder", "onnxruntime"),
    "sentence-transformer": ("sentence_transformers",),
    "sentence-transformer-onnx": ("sentence_transformers", "onnxruntime"),
    "onnx": ("numpy", "onnxruntime", "tokenizers"),
    "model2vec": ("model2vec",),
    "fastembed": ("fastembed",),
    "nothing": (),
}


@dataclass(frozen=True)
class Subject:
    """One encoder under measurement.

    Attributes:
        name: What the report calls it.
        adapter: How `worker.py` loads it. "nothing" encodes nothing, for the cost of imports alone.
        argument: What the adapter loads: a folder, for fastembed also the name of a model, or `module:function`; for a
            bundle, nothing stands for the one in the wheel.
        python: The interpreter of the environment that it lives in.
        modules: What counts as its import: these are imported before it is loaded. None stands for the adapter's.
        note: What a reader should know of it.
    """

    name: str
    adapter: Adapter
    argument: str = ""
    python: str = sys.executable
    modules: tuple[str, ...] | None = None
    note: str = ""

    @property
    def imports(self) -> tuple[str, ...]:
        """What is imported before the subject is loaded."""
        if self.modules is not None:
            return self.modules
        return (self.argument.partition(":")[0],) if self.adapter == "function" else _IMPORTS[self.adapter]


def check_names(names: Sequence[str], baseline: str | None) -> None:
    """Refuse subjects that a report could not tell apart.

    Args:
        names: The subjects' names.
        baseline: The name of the one that the others are compared with; None stands for the first.

    Raises:
        InputError: If there are none, two share a name, or the baseline is not among them.
    """
    if not names:
        raise InputError("no subjects given; expected one or more encoders to measure")
    if len(set(names)) < len(names):
        raise InputError(f"subjects share a name: {', '.join(names)}; expected each name once")
    if baseline is not None and baseline not in names:
        raise InputError(f"baseline {baseline} is not among the subjects: {', '.join(names)}")
