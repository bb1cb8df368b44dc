"""Bidirectional CMOW/CBOW-Hybrid: cross-architecture distillation."""

from edgeembed.plugins import import_modules

import_modules(__name__)
