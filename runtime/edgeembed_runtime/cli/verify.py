"""`edgeembed-runtime verify`: whether a bundle is the one that was exported."""

import argparse

from edgeembed_runtime.cli.arguments import Commands, add_json, add_one_bundle, open_bundle
from edgeembed_runtime.cli.output import print_json


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "verify", help="compare a bundle's files with their checksums; exit code 1 if one differs"
    )
    add_one_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    bundle = open_bundle(args)
    bundle.verify()
    if args.json:
        print_json({"path": bundle.path, "verified": True, "files": len(bundle.files)})
    else:
        print(f"{bundle.path}: all {len(bundle.files)} files are the ones that were exported")
