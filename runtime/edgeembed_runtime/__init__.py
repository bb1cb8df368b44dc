"""Encode texts as embeddings with the encoder in a bundle, rank and search documents by them, and classify texts.

Each public name is imported on first use, so that importing the package (and `edgeembed-runtime --help`) loads neither
NumPy nor ONNX Runtime.
"""

import importlib
import os
from typing import TYPE_CHECKING

from edgeembed_runtime.errors import (
    BundleError,
    CheckError,
    EdgeEmbedError,
    InputError,
    MissingExtraError,
    RoleWarning,
    TruncationWarning,
    UnknownTextWarning,
    VerificationError,
)

if TYPE_CHECKING:
    from edgeembed_runtime.bundle import Bundle
    from edgeembed_runtime.classifier import Classifier, Prediction
    from edgeembed_runtime.documents import Document, Hit, Passage
    from edgeembed_runtime.encoder import Encoder
    from edgeembed_runtime.index.engine import Engine
    from edgeembed_runtime.index.index import Index
    from edgeembed_runtime.index.passages import PassageSettings
    from edgeembed_runtime.interests.centers import Center, InterestSettings
    from edgeembed_runtime.rankers import RelevanceRanker, SemanticRanker
    from edgeembed_runtime.tokenization.tokenizer import TextInfo

__version__ = "0.1.0"

# Since version 1.29, onnxruntime sends telemetry and stores an identifier in the home folder, unless this variable is
# set before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__all__ = [
    "Bundle",
    "BundleError",
    "Center",
    "CheckError",
    "Classifier",
    "Document",
    "EdgeEmbedError",
    "Encoder",
    "Engine",
    "Hit",
    "Index",
    "InputError",
    "InterestSettings",
    "MissingExtraError",
    "Passage",
    "PassageSettings",
    "Prediction",
    "RelevanceRanker",
    "RoleWarning",
    "SemanticRanker",
    "TextInfo",
    "TruncationWarning",
    "UnknownTextWarning",
    "VerificationError",
    "__version__",
]

_MODULES = {
    "Bundle": "bundle",
    "Center": "interests.centers",
    "Classifier": "classifier",
    "Document": "documents",
    "Encoder": "encoder",
    "Engine": "index.engine",
    "Hit": "documents",
    "Index": "index.index",
    "InterestSettings": "interests.centers",
    "Passage": "documents",
    "PassageSettings": "index.passages",
    "Prediction": "classifier",
    "RelevanceRanker": "rankers",
    "SemanticRanker": "rankers",
    "TextInfo": "tokenization.tokenizer",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
