"""GLUE's tasks, gathered from the shared data."""

import json
import lzma
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.cmow.glue_data import main


def write(file: Path, header: str, rows: list[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for split, labels in (("train", "01"), ("dev", "0111")):
        for name in ("glue/cola", "senteval/sst2"):
            write(folder / f"eval/{name}_{split}.tsv", "text\tlabel", [f"text\t{label}" for label in labels])
        write(folder / f"eval/glue/rte_{split}.tsv", "sentence1\tsentence2\tlabel", [f"a\tb\t{x}" for x in labels])
        write(folder / f"eval/stsb/{split}.tsv", "sentence1\tsentence2\tscore", [f"a\tb\t{each}.5" for each in labels])
    pairs = [f"a\tb\t{number % 2}" for number in range(500)]
    write(folder / "eval/glue/mrpc_train_full.tsv", "sentence1\tsentence2\tlabel", pairs)
    nli = ["premise\thypothesis\tlabel\tsource", "other\tb\tneutral\tanother"]
    nli += [f"premise {number // 3}\tb\tentailment\tlingnli" for number in range(3000)]
    file = folder / "train/pairs/nli_pairs.tsv.xz"
    file.parent.mkdir(parents=True)
    file.write_bytes(lzma.compress("\n".join([*nli, ""]).encode()))
    return folder


def test_splits_are_disjoint_and_counted(data: Path, tmp_path: Path) -> None:
    arguments = [str(data), str(tmp_path / "glue"), "--facts", str(tmp_path / "facts.json")]
    CliRunner().invoke(main, arguments, catch_exceptions=False)
    facts = {each.pop("task"): each for each in json.loads((tmp_path / "facts.json").read_text())}
    assert facts["cola"] == {"train": 2, "dev": 4, "most_frequent_label_accuracy": 75}
    assert facts["stsb"] == {"train": 2, "dev": 4, "most_frequent_label_accuracy": None}
    assert facts["mrpc"] == {"train": 92, "dev": 408, "most_frequent_label_accuracy": 50}
    assert facts["mnli"] == {"train": 999, "dev": 2001, "most_frequent_label_accuracy": 100}
    train, dev = (
        {line.split("\t")[0] for line in (tmp_path / f"glue/mnli_{split}.tsv").read_text().splitlines()[1:]}
        for split in ("train", "dev")
    )
    assert train.isdisjoint(dev)
