"""The command `edgeembed-runtime search`: search an index."""

import argparse

from edgeembed_runtime.cli.arguments import Commands, add_bundle, add_engine, add_json, add_top_k, load_encoder
from edgeembed_runtime.cli.output import print_hits


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("search", help="search an index")
    parser.add_argument("index", metavar="INDEX", help="an index folder, made by `edgeembed-runtime index`")
    parser.add_argument("query", metavar="QUERY", help="the text to search for")
    add_top_k(parser, 10)
    add_engine(parser, "the engine of the index")
    add_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    from edgeembed_runtime.index.index import Index

    hits = Index.open(args.index, load_encoder(args), engine=args.engine).search(args.query, args.top_k)
    print_hits(args.query, hits, as_json=args.json)
