"""Every error that edgeembed raises on purpose.

    EdgeEmbedError
    ├── InputError (ValueError)          what was given cannot be used: exit code 2
    │   └── BundleError                  a folder is not a bundle this version can open
    ├── CheckError                       a check or a gate failed: exit code 1
    │   ├── VerificationError            a bundle's files or vectors are not the ones that were exported
    │   └── GateError                    a bundle does not meet what was demanded: nothing was written
    └── MissingExtraError (ImportError)  an optional package is needed: exit code 2

    TruncationWarning (UserWarning)      a text was longer than the encoder reads
    RoleWarning (UserWarning)            a ranker was given an encoder that was exported for the other one

A message is one line: what was given, what is expected, what to do. The tree lives in the lowest room because
every other room raises these too; GateError alone lives with what raises it, in edgeembed_exporters.
"""


class EdgeEmbedError(Exception):
    """Root of all errors that edgeembed raises on purpose."""


class InputError(EdgeEmbedError, ValueError):
    """Raised when what the caller gave cannot be used."""


class BundleError(InputError):
    """Raised when a folder is not a bundle that this version can open."""


class CheckError(EdgeEmbedError):
    """Raised when a check or a quality gate failed."""


class VerificationError(CheckError):
    """Raised when a bundle's files, or its vectors on this processor, differ from the ones that were exported."""


class TruncationWarning(UserWarning):
    """Warned of when the end of a text was not read because the text is too long."""


class RoleWarning(UserWarning):
    """Warned of when a ranker was given an encoder that was exported for another role alone."""


class MissingExtraError(EdgeEmbedError, ImportError):
    """Raised when an optional package is needed and absent.

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


_MAX_REPR_CHARACTERS = 60


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
