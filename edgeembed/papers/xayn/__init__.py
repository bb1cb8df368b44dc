"""Rankers of Xayn: "Extreme compression of sentence-transformer ranker models" (Chaulwar et al. 2022)."""

from edgeembed.plugins import import_modules

import_modules(__name__)
