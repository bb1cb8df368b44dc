"""Results on stdout, safe for any encoding and for a terminal, whatever names files have."""

import codecs
import io
import re
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from edgeembed_runtime.report import Report

_ERRORS = "edgeembed_ascii"
_ASCII = {"\u2013": "-", "\u2014": "-", "\u2026": "...", "→": "->", "─": "-", "━": "-", "│": "|", "┃": "|"}
_FIRST_LINE_CHARACTER, _LAST_LINE_CHARACTER = "\u2500", "\u257f"  # lines of tables
# Without tab and line feed; a terminal obeys the others, escape sequences for example.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def prepare_stdout() -> None:
    """Let stdout write what its encoding lacks in ASCII: lines of tables, arrows and dashes as such, others escaped."""
    codecs.register_error(_ERRORS, _replace_unencodable)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=_ERRORS)


def print_result(result: "Report", *, as_json: bool) -> None:
    """Print a report as text or as JSON."""
    click.echo(escape_controls(result.to_json() if as_json else str(result)))


def escape_controls(text: str) -> str:
    """Return a text with control characters other than tab and line feed escaped, valid in JSON, too."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_as_ascii, error.object[error.start : error.end])), error.end


def _as_ascii(character: str) -> str:
    if character in _ASCII:
        return _ASCII[character]
    if _FIRST_LINE_CHARACTER <= character <= _LAST_LINE_CHARACTER:
        return "+"
    return character.encode("ascii", "backslashreplace").decode()
