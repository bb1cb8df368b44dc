"""Turn a student, or any sentence-transformer, into a bundle.

Names are loaded on first use: the vocabulary tools in `tailoring` need none of torch, and take none of its seconds.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeembed_exporters.exporting import ExportReport, export
    from edgeembed_exporters.gate import GateError
    from edgeembed_exporters.golden import write_golden
    from edgeembed_exporters.options import Precision, Provenance, Role
    from edgeembed_exporters.source import Source, take_apart
    from edgeembed_exporters.tailoring.trimming import TrimReport, trim_to

__all__ = [
    "ExportReport",
    "GateError",
    "Precision",
    "Provenance",
    "Role",
    "Source",
    "TrimReport",
    "export",
    "take_apart",
    "trim_to",
    "write_golden",
]

_MODULES = {
    "ExportReport": "exporting",
    "GateError": "gate",
    "Precision": "options",
    "Provenance": "options",
    "Role": "options",
    "Source": "source",
    "TrimReport": "tailoring.trimming",
    "export": "exporting",
    "take_apart": "source",
    "trim_to": "tailoring.trimming",
    "write_golden": "golden",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
