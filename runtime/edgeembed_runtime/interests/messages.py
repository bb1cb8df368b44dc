"""Values and texts of other origin in error messages, which are one line each."""

_MOST_SHOWN = 60


def shown(value: object) -> str:
    """Return the repr of a value that was given, for a message: on one line, shortened."""
    try:
        text = one_line(repr(value))
    except Exception:  # noqa: BLE001 - an int of more than 4,300 digits has no repr, and a repr may be anyone's code
        return f"of the type {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def one_line(text: str) -> str:
    """Return a text on one line, with every character that cannot be printed escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in " ".join(text.split()))
