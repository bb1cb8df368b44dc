"""Warnings that point to the caller's line."""

import sys
import warnings
from typing import TYPE_CHECKING, Literal

from edgeembed_runtime.errors import RoleWarning

if TYPE_CHECKING:
    from edgeembed_runtime.encoder import Encoder

_PACKAGE = __name__.partition(".")[0]


def caller_stacklevel() -> int:
    """Return the `stacklevel` with which a warning from the calling function points outside this package.

    A warning that pointed to a line of this package would not help, and Python would show it only once per process.
    """
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame = frame.f_back
        level += 1
    return level


def warn_of_other_role(encoder: "Encoder", role: Literal["semantic", "relevance"]) -> None:
    """Warn if an encoder was not exported for a role: its prompts and length limit suit another one.

    Args:
        encoder: The encoder of a ranker.
        role: The ranker's role.

    Warns:
        RoleWarning: If the bundle's roles do not include this one.
    """
    bundle = encoder.bundle
    if role in bundle.roles:
        return
    warnings.warn(
        f"{bundle.name} was exported for the role {', '.join(bundle.roles)}, but this ranker's role is {role}; "
        f"export the bundle with --role {role}, or with --role both to use it for both",
        RoleWarning,
        stacklevel=caller_stacklevel(),
    )
