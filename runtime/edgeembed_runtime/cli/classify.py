"""The command `edgeembed-runtime classify`: print the label of texts."""

import argparse

from edgeembed_runtime.cli.common import Commands, add_json, plain, print_json, read_lines, silence_engine
from edgeembed_runtime.errors import InputError

_EXPLANATION = """
Prints the most probable label of each text and its probability. For a classifier of pairs, the two texts of a pair are
separated by a tab.
"""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("classify", help="print the label of each text", description=_EXPLANATION)
    parser.add_argument("bundle", metavar="BUNDLE", help="the folder of a classifier's bundle")
    parser.add_argument("texts", nargs="+", metavar="TEXT", help="a text; - for stdin, one text per line")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
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
