"""The command `edgeembed-runtime encode`: print the embeddings of texts."""

import argparse

from edgeembed_runtime.cli.common import Commands, add_bundle, add_json, add_texts, load_encoder, print_json, read_texts


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("encode", help="print the embedding of each text")
    add_texts(parser)
    add_bundle(parser)
    parser.add_argument("--truncate-dim", type=int, metavar="N", help="keep only the first N dimensions")
    parser.add_argument(
        "--precision", metavar="NAME", help="float32, int8, uint8, binary or ubinary (default: float32)"
    )
    parser.add_argument("--prompt-name", metavar="NAME", help="the bundle's prompt to prepend to each text")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    texts = read_texts(args)
    embeddings = load_encoder(args).encode(
        texts,
        truncate_dim=args.truncate_dim,
        precision=args.precision,
        prompt_name=args.prompt_name,
        show_progress_bar=True,
    )
    if args.json:
        print_json({"dimension": embeddings.shape[1], "embeddings": embeddings.tolist()})
        return
    for embedding in embeddings:
        print(" ".join(f"{number:.6g}" for number in embedding))
