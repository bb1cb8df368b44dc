"""Arguments that several commands take, and what they stand for."""

import argparse
import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeembed_runtime.builtin_models import find_bundle
from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.engine import ENGINE_NAMES

if TYPE_CHECKING:
    from edgeembed_runtime.encoder import Encoder

Commands = Any  # argparse keeps the type of add_subparsers private


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_bundle(parser: argparse._ActionsContainer) -> None:
    """Add --bundle."""
    parser.add_argument("--bundle", metavar="DIR", help="the bundle to use: a folder, or mini (the default) or nano")


def add_one_bundle(parser: argparse.ArgumentParser) -> None:
    """Add BUNDLE, which may be written --bundle too."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "folder",
        nargs="?",
        metavar="BUNDLE",
        help="the bundle: a folder, or mini (the default) or nano, which came with the wheel",
    )
    add_bundle(group)


def add_texts(parser: argparse.ArgumentParser) -> None:
    """Add FILE... and --text."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="UTF-8, one text a line; - is stdin")
    parser.add_argument("--text", action="append", default=[], metavar="TEXT", help="a text itself; may be repeated")


def add_count(parser: argparse.ArgumentParser, default: int | None, shown: str) -> None:
    """Add -k."""

    def count(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise argparse.ArgumentTypeError(
                f"{text!r} was given, expected a whole number of at least 1 (default: {shown})"
            )
        return int(text)

    parser.add_argument("-k", type=count, default=default, metavar="N", help=f"how many to show (default: {shown})")


def add_engine(parser: argparse.ArgumentParser, default: str) -> None:
    """Add --engine."""
    parser.add_argument(
        "--engine",
        choices=ENGINE_NAMES,
        help=f"how to search; faiss must be installed for its own (default: {default})",
    )


def load_encoder(args: argparse.Namespace) -> "Encoder":
    """Load the encoder that --bundle names.

    Raises:
        InputError: If there is none.
    """
    from edgeembed_runtime.encoder import Encoder

    encoder = Encoder(args.bundle, threads=None)
    silence_engine(encoder.bundle)
    return encoder


def silence_engine(bundle: Bundle) -> None:
    """Keep onnxruntime's log off stderr, where a command prints one line: its errors arrive as exceptions."""
    if bundle.backend != "onnx":
        return
    with contextlib.suppress(ImportError):  # which loading the bundle reports
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)


def open_bundle(args: argparse.Namespace) -> Bundle:
    """Open the bundle that BUNDLE or --bundle names, without its model.

    Raises:
        InputError: If there is none.
    """
    folder, _ = find_bundle(args.bundle if args.folder is None else args.folder)
    return Bundle.open(folder)


def read_texts(args: argparse.Namespace, *, allow_blank: bool = True) -> list[str]:
    """Return the texts of FILE... and --text, in this order.

    Args:
        args: The parsed arguments.
        allow_blank: Whether a text may be empty or whitespace. If not, empty lines at the end of a file are dropped.

    Raises:
        InputError: If there are no texts, a file cannot be read, or a text is blank and may not be.
    """
    if not args.files and not args.text:
        raise InputError("no texts were given; expected a FILE of one text a line, - for stdin, or --text TEXT")
    if not allow_blank and any(not text.strip() for text in args.text):
        raise InputError("--text is blank, expected a text that says something; leave it out")
    texts: list[str] = []
    for name in args.files:
        texts += _read_lines(name) if allow_blank else _without_blank(_read_lines(name), name)
    if not texts and not args.text:
        raise InputError(f"{', '.join(args.files)}: no text in there, expected one a line")
    return [*texts, *args.text]


def _without_blank(lines: list[str], name: str) -> list[str]:
    """Return the lines without empty ones at the end; raise InputError if another one is blank."""
    while lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            where = "stdin" if name == "-" else name
            raise InputError(f"{where}, line {number}: the line is blank, expected one text a line; remove it")
    return lines


def _read_lines(name: str) -> list[str]:
    if name == "-" and sys.stdin is None:
        raise InputError("stdin is closed, so that there is nothing to read; leave it open or give a FILE")
    if name == "-":
        return list(_decode(sys.stdin.buffer, "stdin"))
    try:
        with Path(name).open("rb") as file:
            return list(_decode(file, name))
    except OSError as error:
        expected = "a file of one text a line, - for stdin, or --text TEXT"
        raise InputError(f"cannot read {name}: {error.strerror}; expected {expected}") from error


def _decode(lines: Iterable[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}, line {number}: byte {error.start + 1} is no valid UTF-8, expected UTF-8 text; "
                "convert the file, with iconv for example"
            ) from error
        yield text.removesuffix("\n").removesuffix("\r")
