"""Where our caller's line is, for warnings: one of ours would help nobody, and be shown once a process at most."""

import sys

_PACKAGE = __name__.partition(".")[0]


def caller_stacklevel() -> int:
    """Give the `stacklevel` by which whoever calls this, and warns, names the first line outside this package."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame = frame.f_back
        level += 1
    return level
