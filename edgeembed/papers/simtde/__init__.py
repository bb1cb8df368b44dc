"""SimTDE: simple transferring of a compact token embedding."""

from edgeembed.plugins import import_modules

import_modules(__name__)
