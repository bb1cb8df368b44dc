"""A plugin of edgeembed: a loss, a kind of student, an evaluation task and a recipe."""

from edgeembed.plugins import import_modules

import_modules(__name__)
