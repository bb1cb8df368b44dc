"""Count the sentences of each language that count as unknown to the encoders in the wheel.

    python -m experiments.runtime.unknown_share ../shared/data/train/multilingual > docs/results/unknown-share.json

The argument is a folder of LANGUAGE.txt.xz, one sentence per line.
"""

import json
import lzma
from itertools import islice
from pathlib import Path

import click
from edgeembed_runtime import Encoder
from edgeembed_runtime.coverage import UNKNOWN_SHARE

SENTENCES = 20_000
ENCODERS = ("mini", "nano")


def unknown_sentences(encoder: Encoder, sentences: list[str]) -> int:
    """Return the number of sentences that emit an `UnknownTextWarning`."""
    options = {"on_truncate": "ignore", "on_unknown": "ignore"}
    _, infos = encoder.encode(sentences, return_info=True, **options)  # type: ignore[call-overload]
    return sum(1 - info.known_share >= UNKNOWN_SHARE for info in infos)


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Print the counts as JSON."""
    encoders = {name: Encoder(name, threads=None) for name in ENCODERS}
    counts: dict[str, dict[str, int]] = {}
    for file in sorted(folder.glob("*.txt.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            sentences = [line.rstrip("\n") for line in islice(lines, SENTENCES)]
        unknown = {name: unknown_sentences(encoder, sentences) for name, encoder in encoders.items()}
        counts[file.name.partition(".")[0]] = {"sentences": len(sentences), **unknown}
    click.echo(json.dumps(counts, indent=2))


if __name__ == "__main__":
    main()
