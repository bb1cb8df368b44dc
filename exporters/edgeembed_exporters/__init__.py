"""Turn a student, or any sentence-transformer, into a bundle.

Names are loaded on first use: the vocabulary tools in `tailoring` need none of torch, and take none of its seconds.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeembed_exporters.exporting import ExportReport, export
    from edgeembed_exporters.gate import GateError, OriginalParity
    from edgeembed_exporters.golden import write_golden
    from edgeembed_exporters.mobile import write_ort
    from edgeembed_exporters.options import Precision, Provenance, Role
    from edgeembed_exporters.source import Source, take_apart
    from edgeembed_exporters.tailoring.head import HeadReport, add_head
    from edgeembed_exporters.tailoring.trimming import TrimReport, trim_to, with_vocabulary

__all__ = [
    "ExportReport",
    "GateError",
    "HeadReport",
    "OriginalParity",
    "Precision",
    "Provenance",
    "Role",
    "Source",
    "TrimReport",
    "add_head",
    "export",
    "take_apart",
    "trim_to",
    "with_vocabulary",
    "write_golden",
    "write_ort",
]

_MODULES = {
    "ExportReport": "exporting",
    "GateError": "gate",
    "HeadReport": "tailoring.head",
    "OriginalParity": "gate",
    "Precision": "options",
    "Provenance": "options",
    "Role": "options",
    "Source": "source",
    "TrimReport": "tailoring.trimming",
    "add_head": "tailoring.head",
    "export": "exporting",
    "take_apart": "source",
    "trim_to": "tailoring.trimming",
    "with_vocabulary": "tailoring.trimming",
    "write_golden": "golden",
    "write_ort": "mobile",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
