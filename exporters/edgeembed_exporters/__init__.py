"""Export a sentence-transformers model as a bundle for edgeembed_runtime.

Names are imported when they are first used, so that the vocabulary tools in `reduction` work without importing torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeembed_exporters.bundle.golden import add_golden
    from edgeembed_exporters.bundle.writers import add_ort
    from edgeembed_exporters.bundle_settings import BundleSettings
    from edgeembed_exporters.classification.exporting import ClassifierExportReport, export_classifier
    from edgeembed_exporters.classification.graph import ClassifierModel
    from edgeembed_exporters.exporting import ExportReport, export
    from edgeembed_exporters.gate import GateError, OriginalParity
    from edgeembed_exporters.model_spec import ModelSpec, inspect_model
    from edgeembed_exporters.precision import Precision
    from edgeembed_exporters.provenance import Provenance
    from edgeembed_exporters.reduction.pca_head import PcaHeadReport, add_pca_head
    from edgeembed_exporters.reduction.vocabulary_trimming import TrimReport, trim_vocabulary, with_vocabulary

__all__ = [
    "BundleSettings",
    "ClassifierExportReport",
    "ClassifierModel",
    "ExportReport",
    "GateError",
    "ModelSpec",
    "OriginalParity",
    "PcaHeadReport",
    "Precision",
    "Provenance",
    "TrimReport",
    "add_golden",
    "add_ort",
    "add_pca_head",
    "export",
    "export_classifier",
    "inspect_model",
    "trim_vocabulary",
    "with_vocabulary",
]

_MODULES = {
    "BundleSettings": "bundle_settings",
    "ClassifierExportReport": "classification.exporting",
    "ClassifierModel": "classification.graph",
    "ExportReport": "exporting",
    "GateError": "gate",
    "ModelSpec": "model_spec",
    "OriginalParity": "gate",
    "PcaHeadReport": "reduction.pca_head",
    "Precision": "precision",
    "Provenance": "provenance",
    "TrimReport": "reduction.vocabulary_trimming",
    "add_golden": "bundle.golden",
    "add_ort": "bundle.writers",
    "add_pca_head": "reduction.pca_head",
    "export": "exporting",
    "export_classifier": "classification.exporting",
    "inspect_model": "model_spec",
    "trim_vocabulary": "reduction.vocabulary_trimming",
    "with_vocabulary": "reduction.vocabulary_trimming",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
