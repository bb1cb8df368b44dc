"""Xayn: extreme compression of sentence-transformer ranker models."""

from edgeembed.plugins import import_modules

import_modules(__name__)
