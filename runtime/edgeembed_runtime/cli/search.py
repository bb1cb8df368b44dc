"""The command `edgeembed-runtime search`: search an index."""

import argparse
import json
from typing import Any

from edgeembed_runtime.cli.common import Commands, add_bundle, add_engine, add_json, add_top_k, load_encoder, print_hits
from edgeembed_runtime.errors import short_repr
from edgeembed_runtime.index.engine import SEARCH_METHODS


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("search", help="search an index")
    parser.add_argument("index", metavar="INDEX", help="an index folder, made by `edgeembed-runtime index`")
    parser.add_argument("query", metavar="QUERY", help="the text to search for")
    add_top_k(parser, 10)
    parser.add_argument(
        "--method",
        choices=SEARCH_METHODS,
        default="embedding",
        help="rank by embeddings (default), by keywords (bm25), or by both; the last two need bm25s",
    )
    parser.add_argument(
        "--filter",
        type=_filter,
        metavar="JSON",
        help="""the metadata of the documents to search, for example '{"year": {"$gte": 2020}}'""",
    )
    parser.add_argument("--min-score", type=float, metavar="X", help="the lowest score of a hit (default: no minimum)")
    add_engine(parser, "the engine of the index")
    add_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    from edgeembed_runtime.index.index import Index

    index = Index.open(args.index, load_encoder(args), engine=args.engine)
    hits = index.search(args.query, args.top_k, method=args.method, filter=args.filter, min_score=args.min_score)
    print_hits(args.query, hits, as_json=args.json)


def _filter(text: str) -> dict[str, Any]:
    try:
        condition = json.loads(text)
    except (ValueError, RecursionError):
        condition = None
    if not isinstance(condition, dict):
        expected = """a JSON object such as {"year": {"$gte": 2020}}, in single quotes"""
        raise argparse.ArgumentTypeError(f"the filter is {short_repr(text)}, expected {expected}")
    return condition
