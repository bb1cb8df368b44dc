"""The commands `rank`, `index` and `search`: rank texts by a query, and make and search an index."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeembed_runtime.cli.common import (
    Commands,
    add_bundle,
    add_engine,
    add_json,
    add_texts,
    add_top_k,
    counted,
    load_encoder,
    plain,
    print_hits,
    print_json,
)
from edgeembed_runtime.cli.inputs import read_documents, read_texts
from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.index.engine import INDEX_PRECISIONS, SEARCH_METHODS

if TYPE_CHECKING:
    from edgeembed_runtime.index.index import Index


def add_rank(commands: Commands) -> None:
    """Add the command rank."""
    parser = commands.add_parser("rank", help="rank texts by their relevance to a query")
    parser.add_argument("query", metavar="QUERY", help="the text to search for")
    add_texts(parser)
    add_top_k(parser, None)
    add_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_rank)


def _rank(args: argparse.Namespace) -> None:
    documents = read_texts(args)
    from edgeembed_runtime.rankers import RelevanceRanker

    hits = RelevanceRanker(load_encoder(args)).rank(args.query, documents, args.top_k)
    print_hits(args.query, hits, as_json=args.json)


def add_index(commands: Commands) -> None:
    """Add the command index."""
    parser = commands.add_parser("index", help="build a search index of texts, or add to one")
    add_texts(
        parser,
        "a UTF-8 file with one text per line; a .jsonl with {id, text, metadata} per line, or a .json with a list of "
        "them; a .csv or .tsv with a column text; - for stdin",
    )
    shards = parser.add_argument_group("embeddings that exist already")
    shards.add_argument(
        "--from",
        dest="shards",
        metavar="FOLDER",
        help="take texts and embeddings from Parquet files, which may be larger than memory: a folder of edgeembed "
        'encode, or another one with the columns "text" and "embedding"',
    )
    shards.add_argument("--id-column", metavar="NAME", help="the column with the ids of documents (default: 0, 1, ...)")
    shards.add_argument(
        "--metadata-column", action="append", default=[], metavar="NAME", help="a column of metadata; may be repeated"
    )
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
    parser.set_defaults(run=_index)


def _index(args: argparse.Namespace) -> None:
    _check_options(args)
    if args.shards is None:
        index = _appended(args) if args.append else _built(args)
        documents, dimension = len(index), index.dimension
    else:
        documents, dimension = _built_from_shards(args)
    if args.json:
        print_json({"path": args.out, "documents": documents, "dimension": dimension})
    else:
        print(f"{plain(args.out)}: {counted(documents, 'document')}")


def _check_options(args: argparse.Namespace) -> None:
    if args.append and (args.precision or args.engine):
        raise InputError("--append keeps the precision and engine of the index; leave out --precision and --engine")
    if args.shards is None and (args.id_column or args.metadata_column):
        raise InputError("--id-column and --metadata-column name columns of Parquet files; add --from FOLDER")
    if args.shards is not None and (args.files or args.text or args.append):
        raise InputError("--from builds an index of Parquet files alone; leave out FILE, --text and --append")
    if args.shards is not None and args.engine:
        raise InputError("--from saves an index for the engine numpy; leave out --engine, and pass it to search")


def _built_from_shards(args: argparse.Namespace) -> tuple[int, int]:
    """Return the number of documents and the dimension of the new index, which is not opened."""
    from edgeembed_runtime.index.index import Index

    encoder = load_encoder(args)
    documents = Index.build_from(
        encoder,
        args.shards,
        args.out,
        id_column=args.id_column,
        metadata_columns=args.metadata_column,
        precision=args.precision or "float32",
        force=args.force,
        show_progress_bar=True,
    )
    return documents, encoder.dimension


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
    given = read_documents(args)
    from edgeembed_runtime.index.index import Index

    return Index.append_to(
        args.out, given.texts, load_encoder(args), ids=given.ids, metadata=given.metadata, show_progress_bar=True
    )


def add_search(commands: Commands) -> None:
    """Add the command search."""
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
    parser.set_defaults(run=_search)


def _search(args: argparse.Namespace) -> None:
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
