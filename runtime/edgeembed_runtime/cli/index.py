"""The command `edgeembed-runtime index`: build a search index or add to one."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from edgeembed_runtime.cli.common import (
    Commands,
    add_bundle,
    add_engine,
    add_json,
    add_texts,
    load_encoder,
    print_json,
)
from edgeembed_runtime.cli.documents import read_documents
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.index.engine import INDEX_PRECISIONS

if TYPE_CHECKING:
    from edgeembed_runtime.index.index import Index


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("index", help="build a search index of texts, or add to one")
    add_texts(parser, "a UTF-8 file with one text per line, or .jsonl with {id, text, metadata} per line; - for stdin")
    parser.add_argument("--out", required=True, metavar="INDEX", help="the folder of the index")
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument("--force", action="store_true", help="replace an existing index")
    existing.add_argument("--append", action="store_true", help="add to an existing index")
    parser.add_argument(
        "--precision", choices=INDEX_PRECISIONS, help="the precision of the stored vectors (default: float32)"
    )
    add_engine(parser, "numpy")
    add_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    index = _appended(args) if args.append else _built(args)
    if args.json:
        print_json({"path": args.out, "documents": len(index), "dimension": index.dimension})
    else:
        print(f"{args.out}: {len(index):,} documents")


def _built(args: argparse.Namespace) -> "Index":
    from edgeembed_runtime.index.folder import INDEX_FOLDER
    from edgeembed_runtime.storage.atomic import check_output_path

    check_output_path(Path(args.out), force=args.force, kind=INDEX_FOLDER)
    given = read_documents(args)
    from edgeembed_runtime.index.index import Index

    index = Index.build(
        load_encoder(args),
        given.texts,
        ids=given.ids,
        metadata=given.metadata,
        precision=args.precision or "float32",
        engine=args.engine or "numpy",
        show_progress_bar=True,
    )
    index.save(args.out, force=args.force)
    return index


def _appended(args: argparse.Namespace) -> "Index":
    if args.precision or args.engine:
        raise InputError("--append keeps the precision and engine of the index; leave out --precision and --engine")
    given = read_documents(args)
    from edgeembed_runtime.index.index import Index

    return Index.append_to(
        args.out, given.texts, load_encoder(args), ids=given.ids, metadata=given.metadata, show_progress_bar=True
    )
