"""`edgeembed-runtime index`: a folder that can be searched."""

import argparse
from pathlib import Path

from edgeembed_runtime.cli.arguments import (
    Commands,
    add_bundle,
    add_json,
    add_texts,
    load_encoder,
    read_texts,
)
from edgeembed_runtime.cli.output import print_json
from edgeembed_runtime.files import refuse_existing


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("index", help="make a folder of texts that can be searched")
    add_texts(parser)
    parser.add_argument("--out", required=True, metavar="INDEX", help="the folder to make")
    parser.add_argument("--force", action="store_true", help="replace an index that is there")
    add_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    refuse_existing(Path(args.out), force=args.force)
    documents = read_texts(args)
    from edgeembed_runtime.index import Index

    encoder = load_encoder(args)
    Index.build(encoder, documents, show_progress_bar=True).save(args.out, force=args.force)
    if args.json:
        print_json({"path": args.out, "documents": len(documents), "dimension": encoder.dimension})
    else:
        print(f"{args.out}: {len(documents):,} documents")
