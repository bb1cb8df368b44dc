"""Distillation of a student from a teacher."""

from edgeembed.distillation.distilling import distill
from edgeembed.distillation.report import DistillationReport

__all__ = ["DistillationReport", "distill"]
