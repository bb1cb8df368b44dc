"""`edgeembed-runtime rank`: documents in the order in which they answer a query."""

import argparse

from edgeembed_runtime.cli.arguments import (
    Commands,
    add_bundle,
    add_count,
    add_json,
    add_texts,
    load_encoder,
    read_texts,
)
from edgeembed_runtime.cli.output import print_hits


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("rank", help="rank texts by how well they answer a query")
    parser.add_argument("query", metavar="QUERY", help="what is looked for")
    add_texts(parser)
    add_count(parser, None, "all")
    add_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    documents = read_texts(args)
    from edgeembed_runtime.rankers import RelevanceRanker

    hits = RelevanceRanker(load_encoder(args)).rank(args.query, documents, args.k)
    print_hits(args.query, hits, as_json=args.json)
