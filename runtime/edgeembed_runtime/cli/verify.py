"""The command `edgeembed-runtime verify`: check a bundle's files and its embeddings on this machine."""

import argparse

from edgeembed_runtime.cli.common import Commands, add_json, add_one_bundle, open_bundle, print_json, silence_engine

_EXPLANATION = """
Compares a bundle's files with their checksums and, if they match, its golden vectors with the embeddings that this
machine computes for the same texts; for a classifier, its golden probabilities. Exit codes: 0 everything matches;
1 there is a difference, which --json also lists; 2 the folder cannot be read as a bundle.
"""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "verify",
        help="check a bundle's files and embeddings; exit code 1 if they differ from the exported ones",
        description=_EXPLANATION,
    )
    add_one_bundle(parser)
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> None:
    bundle = open_bundle(args)
    silence_engine(bundle)
    from edgeembed_runtime.verification import verify

    report = verify(bundle)
    if args.json:
        files = len(bundle.files)
        print_json({"path": bundle.path, "verified": not report.differences, "files": files, **vars(report)})
    report.raise_for_differences(bundle.path)
    if not args.json:
        print(f"{bundle.path}: all {len(bundle.files)} files match their checksums")
        print(report.golden_line())
