"""Shared by several commands: arguments, loading of bundles, and printing of results."""

import argparse
import contextlib
import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edgeembed_runtime.builtin_models import find_bundle
from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.index.engine import ENGINE_NAMES

if TYPE_CHECKING:
    from edgeembed_runtime.documents import Hit
    from edgeembed_runtime.encoder import Encoder

Commands = Any  # argparse keeps the type of add_subparsers private

_JOINERS = "\u200c\u200d"  # not printable, but part of emoji and of several scripts


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_bundle(parser: argparse._ActionsContainer) -> None:
    """Add --bundle."""
    parser.add_argument("--bundle", metavar="DIR", help="the encoder: mini (default), nano, micro, or a bundle folder")


def add_one_bundle(parser: argparse.ArgumentParser) -> None:
    """Add the positional BUNDLE, with --bundle as an alternative."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "folder",
        nargs="?",
        metavar="BUNDLE",
        help="mini (default), nano, micro, or a bundle folder",
    )
    add_bundle(group)


def add_texts(
    parser: argparse.ArgumentParser,
    help_text: str = "a UTF-8 file with one text per line, or a .jsonl, .json, .csv or .tsv as for index; - for stdin",
) -> None:
    """Add FILE..., with a description, and --text."""
    parser.add_argument("files", nargs="*", metavar="FILE", help=help_text)
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


def print_json(document: object) -> None:
    """Print one JSON document; dataclasses become objects."""
    print(json.dumps(document, indent=2, default=_as_json))


def print_hits(query: str | None, hits: Sequence["Hit"], *, as_json: bool) -> None:
    """Print hits, one per line: score, id, text or best passage, and metadata if there is any."""
    if as_json:
        print_json({"query": query, "hits": hits})
        return
    for hit in hits:
        fields = [f"{hit.score:.4f}", plain(str(hit.id)), plain((hit.passage or hit).text)]
        print(*fields, *([json.dumps(hit.metadata)] if hit.metadata else []), sep="\t")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "1 center" or "1,000 documents"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def plain(text: str) -> str:
    """Return a text as one line, with control characters escaped, so that it is safe to print in a terminal."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() or c in _JOINERS else c.encode("unicode_escape").decode("ascii") for c in line)


def _as_json(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)
