"""`edgeembed-runtime verify`: whether a bundle is the one that was exported, and gives the same here."""

import argparse

from edgeembed_runtime.cli.arguments import Commands, add_json, add_one_bundle, open_bundle, silence_engine
from edgeembed_runtime.cli.output import print_json

_EXPLANATION = """
Compares a bundle's files with their checksums and, if all are right, the vectors that its exporter kept in it (its
golden vectors) with those that this machine gives for the same texts. Exit codes: 0 nothing differs; 1 something does,
which --json then lists too; 2 the folder cannot be read as a bundle (edgeembed.json or a file is missing or no such
file), so that there is nothing to compare.
"""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "verify",
        help="compare a bundle's files and vectors with those that were exported; exit code 1 if one differs",
        description=_EXPLANATION,
    )
    add_one_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    bundle = open_bundle(args)
    silence_engine(bundle)
    from edgeembed_runtime.verification import verify

    found = verify(bundle)
    if args.json:
        files = len(bundle.files)
        print_json({"path": bundle.path, "verified": not found.differences, "files": files, **vars(found)})
    found.raise_for_differences(bundle.path)
    if not args.json:
        print(f"{bundle.path}: all {len(bundle.files)} files are the ones that were exported")
        print(found.golden_line())
