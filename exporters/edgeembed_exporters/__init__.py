"""Turn a student, or any sentence-transformer, into a bundle."""

from edgeembed_exporters.exporting import ExportReport, export
from edgeembed_exporters.gate import GateError
from edgeembed_exporters.golden import write_golden
from edgeembed_exporters.options import Precision, Provenance, Role
from edgeembed_exporters.source import Source, take_apart

__all__ = [
    "ExportReport",
    "GateError",
    "Precision",
    "Provenance",
    "Role",
    "Source",
    "export",
    "take_apart",
    "write_golden",
]
