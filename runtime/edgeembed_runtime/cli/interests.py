"""The command `edgeembed-runtime interests`: show, edit and use a store of interests."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from edgeembed_runtime.cli.common import (
    Commands,
    add_bundle,
    add_json,
    add_texts,
    add_top_k,
    counted,
    load_encoder,
    plain,
    print_hits,
    print_json,
)
from edgeembed_runtime.cli.inputs import read_texts
from edgeembed_runtime.errors import InputError, short_repr

if TYPE_CHECKING:
    from edgeembed_runtime.interests.centers import Center

_SECONDS_PER_DAY = 86_400


def add_interests(commands: Commands) -> None:
    """Add the command interests and its actions."""
    parser = commands.add_parser("interests", help="show and edit the interests that a SemanticRanker learned")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_action(actions, "show", "list the centers of interest", _show)
    for name, text in (
        ("like", "record that the user likes texts"),
        ("dislike", "record that the user dislikes texts"),
    ):
        _add_reaction(actions, name, text)
    view = _add_reaction(actions, "view", "record that the user viewed texts")
    view.add_argument("--seconds", type=float, required=True, metavar="N", help="how long each text was viewed")
    _add_rank(actions)
    _add_action(actions, "export", "print everything in the store, as JSON", _export)
    forget = _add_action(actions, "forget", "remove centers", _forget)
    forget.add_argument("ids", nargs="+", type=int, metavar="ID", help="the id of a center, as `show` lists it")
    forget_all = _add_action(actions, "forget-all", "remove all centers", _forget_all)
    forget_all.add_argument("--yes", action="store_true", help="confirm; it cannot be undone")


def _add_action(
    actions: Commands, name: str, text: str, run: Callable[[argparse.Namespace], None]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text)
    parser.add_argument("store", metavar="STORE", help="the file, for example interests.db")
    add_json(parser)
    parser.set_defaults(run=run)
    return parser


def _add_reaction(actions: Commands, name: str, text: str) -> argparse.ArgumentParser:
    parser = _add_action(actions, name, f"{text}; creates the store if it is absent", _react)
    add_texts(parser)
    add_bundle(parser)
    parser.set_defaults(reaction=name)
    return parser


def _add_rank(actions: Commands) -> None:
    parser = _add_action(actions, "rank", "rank texts by interest, and by a query if there is one", _rank)
    add_texts(parser)
    parser.add_argument("--query", metavar="QUERY", help="the query")
    add_top_k(parser, None)
    add_bundle(parser)


def _show(args: argparse.Namespace) -> None:
    from edgeembed_runtime.interests.store import InterestStore

    store = InterestStore(args.store)
    # The sort is stable: of equal weights the older center comes first.
    centers = sorted(store.centers(), key=lambda center: (center.kind == "disinterest", -center.weight))
    if args.json:
        entries = [{name: value for name, value in vars(center).items() if name != "vector"} for center in centers]
        print_json({"path": args.store, "encoder": store.encoder._asdict(), "centers": entries})
        return
    print(f"{plain(args.store)}: {counted(len(centers), 'center')}, encoder {plain(store.encoder.name)}")
    if centers:
        print(f"{'center':>6} {'kind':11} {'weight':>7} {'uses':>5} {'viewed':>8} {'days ago':>8}  example")
    now = time.time()
    for center in centers:
        print(_line(center, now))


def _line(center: "Center", now: float) -> str:
    days = max(0, now - center.last_used) / _SECONDS_PER_DAY
    return (
        f"{center.id:6} {center.kind:11} {center.weight:7.2f} {center.uses:5} {center.view_seconds:6.0f} s "
        f"{days:8.1f}  {plain(center.example)}"
    )


def _react(args: argparse.Namespace) -> None:
    texts = read_texts(args, allow_blank=False)
    from edgeembed_runtime._validation import validate_number
    from edgeembed_runtime.interests.centers import normalized_embedding
    from edgeembed_runtime.rankers import SemanticRanker

    # Validate everything before the ranker creates the store and before the first text changes it.
    if args.reaction == "view":
        validate_number("--seconds", args.seconds)
    encoder = load_encoder(args)
    embeddings = encoder.encode_document(texts, on_unknown="error", show_progress_bar=True)
    for text, embedding in zip(texts, embeddings, strict=True):
        try:
            normalized_embedding(embedding, encoder.dimension)
        except InputError as error:
            raise InputError(f"{short_repr(text)}: {error}") from error
    ranker = SemanticRanker(encoder, args.store)
    if args.reaction == "view":
        centers = [
            ranker.view(text, args.seconds, embedding=embedding)
            for text, embedding in zip(texts, embeddings, strict=True)
        ]
    else:
        react = ranker.like if args.reaction == "like" else ranker.dislike
        centers = [react(text, embedding=embedding) for text, embedding in zip(texts, embeddings, strict=True)]
    if args.json:
        print_json({"path": args.store, "reaction": args.reaction, "centers": centers})
        return
    for text, center in zip(texts, centers, strict=True):
        print(f"{'-' if center is None else center}\t{plain(text)}")


def _rank(args: argparse.Namespace) -> None:
    texts = read_texts(args)
    if not Path(args.store).is_file():  # SemanticRanker would create it
        raise InputError(f"{args.store} is not a file, expected an existing store; like a text first")
    from edgeembed_runtime.rankers import SemanticRanker

    hits = SemanticRanker(load_encoder(args), args.store).rank(args.query, texts, args.top_k)
    print_hits(args.query, hits, as_json=args.json)


def _export(args: argparse.Namespace) -> None:
    from edgeembed_runtime.interests.store import InterestStore

    print_json(InterestStore(args.store).export())


def _forget(args: argparse.Namespace) -> None:
    from edgeembed_runtime.interests.store import InterestStore

    InterestStore(args.store).forget(*args.ids)
    _print_forgotten(args, len(set(args.ids)))


def _forget_all(args: argparse.Namespace) -> None:
    from edgeembed_runtime.interests.store import InterestStore

    store = InterestStore(args.store)
    if not args.yes:
        raise InputError(
            f"{args.store} has {counted(len(store.export()['centers']), 'center')}, and forgetting cannot be undone; "
            "pass --yes to confirm, or save them with `interests export` first"
        )
    _print_forgotten(args, store.forget_all())


def _print_forgotten(args: argparse.Namespace, count: int) -> None:
    if args.json:
        print_json({"path": args.store, "forgotten": count})
    else:
        print(f"{plain(args.store)}: {counted(count, 'center')} forgotten")
