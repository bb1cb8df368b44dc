"""Gathers GLUE's tasks from `../shared/data` into one folder, as `edgeembed evaluate --glue` and `finetune` read them.

    python -m experiments.cmow.glue_data ../shared/data build/glue --facts facts.json

Writes as JSON the number of examples of each task and, except for STS-B, the accuracy on its dev set (x100) of always
choosing the most frequent label.
CoLA, SST-2, RTE and STS-B have GLUE's own splits. MRPC's dev set is the last 408 rows of its training split, as many as
GLUE's. MNLI is not at hand: `mnli_*` are pairs of LingNLI, with MNLI's three labels and partly its premises; the dev
set has the pairs of the last premises, 2,000 or a few more. QQP, QNLI and WNLI are left out: their training splits are
not at hand.
"""

import json
import lzma
import shutil
from collections import Counter
from pathlib import Path

import click

_MRPC_DEV = 408
_NLI_DEV = 2_000
_NLI_SOURCE = "lingnli"
_COPIES = {
    "cola": "glue/cola_{}.tsv",
    "sst2": "senteval/sst2_{}.tsv",
    "rte": "glue/rte_{}.tsv",
    "stsb": "stsb/{}.tsv",
}


@click.command(help=__doc__)
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--facts", required=True, type=click.Path(path_type=Path), help="JSON file of the counts to write.")
def main(data: Path, out: Path, facts: Path) -> None:
    """Write the training and the development split of every task."""
    out.mkdir(parents=True, exist_ok=True)
    for name, file in _COPIES.items():
        for split in ("train", "dev"):
            shutil.copyfile(data / "eval" / file.format(split), out / f"{name}_{split}.tsv")
    header, *rows = (data / "eval/glue/mrpc_train_full.tsv").read_text(encoding="utf-8").splitlines()
    _write(out, "mrpc", header, rows[:-_MRPC_DEV], rows[-_MRPC_DEV:])
    _write(out, "mnli", *_nli(data / "train/pairs/nli_pairs.tsv.xz"))
    facts.parent.mkdir(parents=True, exist_ok=True)
    found = [_facts(out, name) for name in (*_COPIES, "mrpc", "mnli")]
    facts.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _facts(folder: Path, name: str) -> dict[str, str | int | float | None]:
    """Return the number of examples of each split of a task, and the share of the most frequent label."""
    train, dev = (
        [line.split("\t") for line in (folder / f"{name}_{split}.tsv").read_text(encoding="utf-8").splitlines()]
        for split in ("train", "dev")
    )
    frequent = None
    if "label" in dev[0]:
        place = dev[0].index("label")
        frequent = 100 * max(Counter(row[place] for row in dev[1:]).values()) / (len(dev) - 1)
    return {"task": name, "train": len(train) - 1, "dev": len(dev) - 1, "most_frequent_label_accuracy": frequent}


def _nli(file: Path) -> tuple[str, list[str], list[str]]:
    """Return header, training and development rows; no premise is in both."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        table = [line.rstrip("\n").split("\t") for line in lines]
    names = table[0]
    source, premise = names.index("source"), names.index("premise")
    kept = [row for row in table[1:] if row[source] == _NLI_SOURCE]
    pairs_of = Counter(row[premise] for row in kept)
    held_out: set[str] = set()
    while sum(pairs_of[each] for each in held_out) < _NLI_DEV:
        held_out.add(next(row[premise] for row in reversed(kept) if row[premise] not in held_out))
    train, dev = (["\t".join(row) for row in kept if (row[premise] in held_out) == is_dev] for is_dev in (False, True))
    return "\t".join(names), train, dev


def _write(out: Path, name: str, header: str, train: list[str], dev: list[str]) -> None:
    for split, rows in (("train", train), ("dev", dev)):
        (out / f"{name}_{split}.tsv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
