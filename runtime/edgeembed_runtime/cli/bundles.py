"""The commands `info` and `verify`: describe a bundle, and check its files and embeddings."""

import argparse

from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.cli.common import (
    Commands,
    add_json,
    add_one_bundle,
    open_bundle,
    plain,
    print_json,
    silence_engine,
)
from edgeembed_runtime.manifest import Manifest
from edgeembed_runtime.parity import ClassifierParity

_VERIFY = """
Compares a bundle's files with their checksums and, if they match, its golden vectors with the embeddings that this
machine computes for the same texts; for a classifier, its golden probabilities. Exit codes: 0 everything matches;
1 there is a difference, which --json also lists; 2 the folder cannot be read as a bundle.
"""


def add_info(commands: Commands) -> None:
    """Add the command info."""
    parser = commands.add_parser("info", help="describe a bundle")
    add_one_bundle(parser)
    parser.add_argument(
        "--text", action="append", default=[], help="say what the encoder reads of a text; may be repeated"
    )
    add_json(parser)
    parser.set_defaults(run=_info)


def _info(args: argparse.Namespace) -> None:
    bundle = open_bundle(args)
    if args.text:
        _print_texts(bundle, args.text, as_json=args.json)
        return
    if args.json:
        fields = {name: getattr(bundle, name) for name in Manifest.__annotations__}
        files = [file.to_json() for file in bundle.files]
        fields |= {"path": bundle.path, "parity": bundle.parity, "files": files}
        print_json({"size_bytes": bundle.size_bytes, "fingerprint": bundle.fingerprint, **fields})
        return
    for name, value in _lines(bundle).items():
        print(f"{name:16} {plain(str(value))}")


def _print_texts(bundle: Bundle, texts: list[str], *, as_json: bool) -> None:
    """Print what an encoder reads of texts: tokens, truncation, and what its vocabulary does not know."""
    from edgeembed_runtime.encoder import Encoder

    silence_engine(bundle)
    _, infos = Encoder(bundle).encode(texts, return_info=True, on_truncate="ignore", on_unknown="ignore")
    if as_json:
        print_json({"texts": [{"text": text, **info._asdict()} for text, info in zip(texts, infos, strict=True)]})
        return
    for text, info in zip(texts, infos, strict=True):
        truncated = ", truncated" if info.truncated else ""
        unknown = f", unknown: {' '.join(info.unknown)}" if info.unknown else ""
        print(f"{plain(text)}\t{info.tokens} tokens{truncated}, {info.known_share:.0%} known{plain(unknown)}")


def _lines(bundle: Bundle) -> dict[str, object]:
    parity = bundle.parity
    agreement: dict[str, object]
    if isinstance(parity, ClassifierParity):
        purpose = {"labels": ", ".join(bundle.labels), "input": "pairs of texts" if bundle.is_pairs else "texts"}
        agreement = {"label agreement": f"{parity.label_agreement:.2%} with its classifier, {parity.sentences:,} texts"}
    else:
        purpose = {"role": ", ".join(bundle.roles)}
        agreement = {"minimum cosine": f"{parity.min_cosine:.4f} to its student, {parity.sentences:,} texts"}
    return {
        "name": bundle.name,
        "path": bundle.path,
        "task": bundle.task,
        **purpose,
        "teacher": bundle.teacher or "none",
        "space": bundle.space or "none stated",
        "size": f"{bundle.size_bytes / 1e6:.2f} MB",
        "parameters": f"{bundle.num_parameters:,}",
        "precision": bundle.precision,
        "backend": bundle.backend,
        "dimension": bundle.dimension,
        "max_seq_length": f"{bundle.max_seq_length} tokens",
        "pooling": bundle.pooling,
        "prompts": ", ".join(bundle.prompts) or "none",
        # What each license is for is in parentheses: the model card and --json have it.
        "licenses": ", ".join(dict.fromkeys(each.partition(" (")[0] for each in bundle.licenses)) or "none given",
        **agreement,
        "fingerprint": bundle.fingerprint,
    }


def add_verify(commands: Commands) -> None:
    """Add the command verify."""
    parser = commands.add_parser(
        "verify",
        help="check a bundle's files and embeddings; exit code 1 if they differ from the exported ones",
        description=_VERIFY,
    )
    add_one_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_verify)


def _verify(args: argparse.Namespace) -> None:
    bundle = open_bundle(args)
    silence_engine(bundle)
    from edgeembed_runtime.verification import verify

    report = verify(bundle)
    if args.json:
        files = len(bundle.files)
        print_json({"path": bundle.path, "verified": not report.differences, "files": files, **vars(report)})
    report.raise_for_differences(bundle.path)
    if not args.json:
        print(f"{plain(str(bundle.path))}: all {len(bundle.files)} files match their checksums")
        print(plain(report.golden_line()))
