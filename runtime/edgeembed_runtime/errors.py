"""Errors and warnings of edgeembed, and helpers for their messages.

    EdgeEmbedError
    ├── InputError (ValueError)          an argument or input is invalid: exit code 2
    │   └── BundleError                  a folder is not a bundle this version can open
    ├── CheckError                       a check or a gate failed: exit code 1
    │   ├── VerificationError            a bundle's files or embeddings differ from the exported ones
    │   └── GateError                    a bundle misses its limits: nothing was written
    └── MissingExtraError (ImportError)  an optional package is needed: exit code 2

    TruncationWarning (UserWarning)      a text was longer than the encoder's limit and was cut
    UnknownTextWarning (UserWarning)     the vocabulary knows almost none of a text's words
    RoleWarning (UserWarning)            an encoder was exported for another ranker

A message is one line: what was given, what is expected, what to do. The classes are defined in the lowest package,
because all packages raise them. GateError alone is defined in edgeembed_exporters, which raises it.
"""

import sys
import warnings
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from edgeembed_runtime.encoder import Encoder

_PACKAGE = __name__.partition(".")[0]
_MAX_REPR_CHARACTERS = 60


class EdgeEmbedError(Exception):
    """Base class of all errors that edgeembed raises on purpose."""


class InputError(EdgeEmbedError, ValueError):
    """Raised when an argument or an input is invalid."""


class BundleError(InputError):
    """Raised when a folder is not a bundle that this version can open."""


class CheckError(EdgeEmbedError):
    """Raised when a check or a quality gate failed."""


class VerificationError(CheckError):
    """Raised when a bundle's files, or its embeddings on this processor, differ from the exported ones."""


class TruncationWarning(UserWarning):
    """Emitted when a text is longer than the encoder's limit, so that its end was not read."""


class UnknownTextWarning(UserWarning):
    """Emitted when the vocabulary knows almost none of a text's words, so that its embedding means little."""


class RoleWarning(UserWarning):
    """Emitted when a ranker gets an encoder that was exported only for another role."""


class MissingExtraError(EdgeEmbedError, ImportError):
    """Raised when an optional package is needed but not installed.

    Args:
        package: The package that is missing.
        extra: The extra that installs it.
        distribution: The distribution whose extra that is.

    Attributes:
        extra: The extra to install.
    """

    def __init__(self, package: str, extra: str, distribution: str = "edgeembed") -> None:
        super().__init__(f"{package} is not installed; install it with: pip install '{distribution}[{extra}]'")
        self.extra = extra


def one_line(text: str) -> str:
    """Return a text on one line, with unprintable characters escaped, so that it can be part of a message."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in " ".join(text.split()))


def short_repr(value: object) -> str:
    """Return the repr of a value on one line, shortened, so that it can be part of a message."""
    try:
        text = one_line(repr(value))
    except Exception:  # noqa: BLE001 - an int of more than 4,300 digits has no repr, and other objects may fail too
        return f"of the type {type(value).__name__}"
    return text if len(text) <= _MAX_REPR_CHARACTERS else f"{text[:_MAX_REPR_CHARACTERS]}..."


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
