"""The command `edgeembed-runtime info`: describe a bundle."""

import argparse

from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.cli.arguments import Commands, add_json, add_one_bundle, open_bundle
from edgeembed_runtime.cli.output import plain, print_json


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("info", help="describe a bundle")
    add_one_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    bundle = open_bundle(args)
    if args.json:
        print_json({"size_bytes": bundle.size_bytes, "fingerprint": bundle.fingerprint, **vars(bundle)})
        return
    for name, value in _lines(bundle).items():
        print(f"{name:16} {plain(str(value))}")


def _lines(bundle: Bundle) -> dict[str, object]:
    return {
        "name": bundle.name,
        "path": bundle.path,
        "role": ", ".join(bundle.roles),
        "teacher": bundle.teacher or "none",
        "size": f"{bundle.size_bytes / 1e6:.2f} MB",
        "parameters": f"{bundle.num_parameters:,}",
        "precision": bundle.precision,
        "backend": bundle.backend,
        "dimension": bundle.dimension,
        "max_seq_length": f"{bundle.max_seq_length} tokens",
        "pooling": bundle.pooling,
        "prompts": ", ".join(bundle.prompts) or "none",
        "licenses": ", ".join(bundle.licenses) or "none given",
        "minimum cosine": f"{bundle.parity.min_cosine:.4f} to its student, {bundle.parity.sentences:,} texts",
        "fingerprint": bundle.fingerprint,
    }
