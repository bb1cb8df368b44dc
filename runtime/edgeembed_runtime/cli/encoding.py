"""The commands `encode` and `classify`: print the embeddings or the labels of texts."""

import argparse

from edgeembed_runtime.cli.common import (
    Commands,
    add_bundle,
    add_json,
    add_texts,
    load_encoder,
    plain,
    print_json,
    silence_engine,
)
from edgeembed_runtime.cli.files import read_lines
from edgeembed_runtime.cli.inputs import read_texts
from edgeembed_runtime.errors import InputError

_CLASSIFY = """
Prints the most probable label of each text and its probability. For a classifier of pairs, the two texts of a pair are
separated by a tab.
"""


def add_encode(commands: Commands) -> None:
    """Add the command encode."""
    parser = commands.add_parser("encode", help="print the embedding of each text")
    add_texts(parser)
    add_bundle(parser)
    parser.add_argument("--truncate-dim", type=int, metavar="N", help="keep only the first N dimensions")
    parser.add_argument(
        "--precision", metavar="NAME", help="float32, int8, uint8, binary or ubinary (default: float32)"
    )
    parser.add_argument("--prompt-name", metavar="NAME", help="the bundle's prompt to prepend to each text")
    add_json(parser)
    parser.set_defaults(run=_encode)


def _encode(args: argparse.Namespace) -> None:
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


def add_classify(commands: Commands) -> None:
    """Add the command classify."""
    parser = commands.add_parser("classify", help="print the label of each text", description=_CLASSIFY)
    parser.add_argument("bundle", metavar="BUNDLE", help="the folder of a classifier's bundle")
    parser.add_argument("texts", nargs="+", metavar="TEXT", help="a text; - for stdin, one text per line")
    add_json(parser)
    parser.set_defaults(run=_classify)


def _classify(args: argparse.Namespace) -> None:
    from edgeembed_runtime.classifier import Classifier

    texts = [line for text in args.texts for line in (read_lines("-") if text == "-" else [text])]
    if not texts:
        raise InputError("stdin has no text, expected one text per line")
    classifier = Classifier(args.bundle, threads=None)
    silence_engine(classifier.bundle)
    inputs = [_pair(text) for text in texts] if classifier.is_pairs else texts
    predictions = classifier.predict(inputs, show_progress_bar=True)
    if args.json:
        rows = [{"text": text, **vars(prediction)} for text, prediction in zip(texts, predictions, strict=True)]
        print_json({"labels": classifier.labels, "predictions": rows})
        return
    for text, prediction in zip(texts, predictions, strict=True):
        print(f"{plain(prediction.label)}\t{prediction.score:.4f}\t{plain(text)}")


def _pair(text: str) -> tuple[str, str]:
    first, tab, second = text.partition("\t")
    if not tab or "\t" in second:
        raise InputError(f"the text is {plain(text)[:60]!r}, expected two texts separated by a tab")
    return first, second
