"""Arguments that several commands share, and the functions that read them."""

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
    parser.add_argument("--bundle", metavar="DIR", help="the encoder: mini (default), nano, or a bundle folder")


def add_one_bundle(parser: argparse.ArgumentParser) -> None:
    """Add the positional BUNDLE, with --bundle as an alternative."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "folder",
        nargs="?",
        metavar="BUNDLE",
        help="mini (default), nano, or a bundle folder",
    )
    add_bundle(group)


def add_texts(parser: argparse.ArgumentParser) -> None:
    """Add FILE... and --text."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="a UTF-8 file with one text per line; - for stdin")
    parser.add_argument("--text", action="append", default=[], metavar="TEXT", help="a text; may be repeated")


def add_top_k(parser: argparse.ArgumentParser, default: int | None) -> None:
    """Add -k and --top-k."""
    shown = "all" if default is None else str(default)

    def top_k(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise argparse.ArgumentTypeError(f"top_k is {text!r}, expected an integer of at least 1 (default: {shown})")
        return int(text)

    parser.add_argument(
        "-k", "--top-k", type=top_k, default=default, metavar="N", help=f"the number of hits (default: {shown})"
    )


def add_engine(parser: argparse.ArgumentParser, default: str) -> None:
    """Add --engine."""
    parser.add_argument(
        "--engine",
        choices=ENGINE_NAMES,
        help=f"the search engine; faiss-* need faiss (default: {default})",
    )


def load_encoder(args: argparse.Namespace) -> "Encoder":
    """Load the encoder of --bundle.

    Raises:
        InputError: If there is no such bundle.
    """
    from edgeembed_runtime.encoder import Encoder

    encoder = Encoder(args.bundle, threads=None)
    silence_engine(encoder.bundle)
    return encoder


def silence_engine(bundle: Bundle) -> None:
    """Turn off onnxruntime's log on stderr: its errors are raised as exceptions."""
    if bundle.backend != "onnx":
        return
    with contextlib.suppress(ImportError):  # loading the bundle reports it
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)


def open_bundle(args: argparse.Namespace) -> Bundle:
    """Open the bundle of BUNDLE or --bundle without loading its model.

    Raises:
        InputError: If there is no such bundle.
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
        raise InputError("no texts were given, expected a FILE with one text per line, - for stdin, or --text TEXT")
    if not allow_blank and any(not text.strip() for text in args.text):
        raise InputError("--text is blank, expected a text that is not blank; leave it out")
    texts: list[str] = []
    for name in args.files:
        texts += _read_lines(name) if allow_blank else _without_blank(_read_lines(name), name)
    if not texts and not args.text:
        raise InputError(f"{', '.join(args.files)}: the file has no text, expected one text per line")
    return [*texts, *args.text]


def _without_blank(lines: list[str], name: str) -> list[str]:
    """Return the lines without empty ones at the end; raise InputError if another one is blank."""
    while lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            where = "stdin" if name == "-" else name
            raise InputError(f"{where}, line {number}: the line is blank, expected one text per line; remove it")
    return lines


def _read_lines(name: str) -> list[str]:
    if name == "-" and sys.stdin is None:
        raise InputError("stdin is closed, expected texts to read; leave it open or pass a FILE")
    if name == "-":
        return list(_decode(sys.stdin.buffer, "stdin"))
    try:
        with Path(name).open("rb") as file:
            return list(_decode(file, name))
    except OSError as error:
        expected = "a file with one text per line, - for stdin, or --text TEXT"
        raise InputError(f"cannot read {name}: {error.strerror}; expected {expected}") from error


def _decode(lines: Iterable[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}, line {number}: byte {error.start + 1} is not valid UTF-8, expected UTF-8 text; "
                "convert the file, with iconv for example"
            ) from error
        yield text.removesuffix("\n").removesuffix("\r")
