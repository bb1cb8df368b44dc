"""Built-in bundles by name in every command that takes a model."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from edgeembed_runtime import Encoder
from edgeembed_runtime.builtin_models import builtin_bundle, builtin_names
from edgeembed_runtime.errors import InputError

from edgeembed.benchmarking import find_subjects
from edgeembed.cli.main import main
from edgeembed.evaluation import load_encoder
from edgeembed.models import find_model, find_torch_model, load_tokenizer

Captured = pytest.CaptureFixture[str]


def run(arguments: Sequence[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return int(left.value.code or 0)


@pytest.mark.parametrize("name", ["mini", "nano", "micro"])
def test_a_built_in_bundle_is_found_by_name(name: str) -> None:
    assert name in builtin_names()
    assert find_model(name) == Path(str(builtin_bundle(name)))
    encoder = load_encoder(name)
    assert isinstance(encoder, Encoder)
    assert encoder.bundle.name.endswith(name)
    assert load_tokenizer(name).get_vocab_size() > 1000


def test_a_built_in_name_takes_precedence_over_a_folder(
    teacher_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mini").symlink_to(teacher_folder)
    with caplog.at_level(logging.WARNING):
        assert find_model("mini") == Path(str(builtin_bundle("mini")))
    assert "mini is the built-in bundle; expected ./mini" in caplog.text
    assert find_model("./mini").resolve() == teacher_folder
    named, path = find_subjects(["mini", "./mini"])
    assert (named.adapter, named.argument) == ("bundle", str(Path(str(builtin_bundle("mini"))).resolve()))
    assert (path.adapter, path.argument) == ("sentence-transformer", str(teacher_folder))


def test_evaluate_scores_a_built_in_bundle(tmp_path: Path, capsys: Captured) -> None:
    pairs = tmp_path / "pairs.tsv"
    rows = ("a cat sits\tthe cat sat\t5", "a cat sits\tshares fell\t0", "a red car\tthe car is red\t4")
    pairs.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert run(["evaluate", "nano", "--against", "mini", "--sts", str(pairs), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["model"], found["scores"][0]["items"]) == ("nano", 3)


def test_verify_checks_a_built_in_bundle(capsys: Captured) -> None:
    assert run(["verify", "nano", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["bundle"], found["verified"]) == ("nano", True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "mini", "--out", "OUT"],
        ["distill", "--teacher", "mini", "--corpus", "TEXT", "--out", "OUT"],
        ["finetune", "mini", "--train", "LABELS", "--dev", "LABELS", "--out", "OUT"],
        ["mine", "--teacher", "mini", "--pairs", "PAIRS", "--out", "OUT"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_that_need_torch_weights_reject_a_bundle(
    arguments: list[str], tmp_path: Path, capsys: Captured
) -> None:
    files = {
        "TEXT": "a small cat sleeps\n",
        "LABELS": "label\ttext\na\tone\nb\ttwo\n",
        "PAIRS": "anchor\tpositive\na\tb\nc\td\n",
    }
    for name, content in files.items():
        (tmp_path / name).with_suffix(".tsv" if name != "TEXT" else ".txt").write_text(content, encoding="utf-8")
    places = {"OUT": "out", "TEXT": "TEXT.txt", "LABELS": "LABELS.tsv", "PAIRS": "PAIRS.tsv"}
    assert run([str(tmp_path / places[each]) if each in places else each for each in arguments]) == 2
    (last,) = capsys.readouterr().err.strip().splitlines()
    assert last.startswith("edgeembed: mini is a built-in bundle, which only encodes; expected a model with torch")
    assert not (tmp_path / "out").exists()


def test_a_bundle_folder_is_an_error_if_torch_weights_are_needed() -> None:
    with pytest.raises(InputError, match="is a bundle, which only encodes; expected a model with torch weights"):
        find_torch_model(str(builtin_bundle("nano")))


def test_a_misspelled_name_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"no model called minni; did you mean mini\?"):
        find_model("minni")
