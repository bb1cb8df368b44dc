"""The command `edgeembed-runtime rank`: rank documents by their relevance to a query."""

import argparse

from edgeembed_runtime.cli.common import (
    Commands,
    add_bundle,
    add_json,
    add_texts,
    add_top_k,
    load_encoder,
    print_hits,
    read_texts,
)


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("rank", help="rank texts by their relevance to a query")
    parser.add_argument("query", metavar="QUERY", help="the text to search for")
    add_texts(parser)
    add_top_k(parser, None)
    add_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    documents = read_texts(args)
    from edgeembed_runtime.rankers import RelevanceRanker

    hits = RelevanceRanker(load_encoder(args)).rank(args.query, documents, args.top_k)
    print_hits(args.query, hits, as_json=args.json)
