import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from edgeembed_runtime.errors import InputError

from edgeembed.cli.evaluate import command
from edgeembed.evaluation import suite


class _Hashing:
    """A cheap encoder: counts of letters, rotated by its seed."""

    def __init__(self, seed: int) -> None:
        self.projection = np.random.default_rng(seed).normal(size=(26, 16))

    def encode(self, texts: list[str], /, *, batch_size: int = 32) -> Any:  # noqa: ARG002
        counts = np.array([[text.count(chr(97 + letter)) for letter in range(26)] for text in texts])
        return (counts @ self.projection).astype(np.float32)

    encode_query = encode
    encode_document = encode


@pytest.fixture
def sts_file(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.tsv"
    rows = ("a cat sits\ta cat sat\t5", "a dog runs\tthe dog ran\t4", "a cat\tthe sun\t1", "rain\twater\t2.5")
    file.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    return file


@pytest.fixture(autouse=True)
def cheap_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "open_encoder", lambda name: _Hashing(len(name)))


def test_scores_are_shown_beside_the_reference_with_their_percentage(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--against", "reference", "--sts", str(sts_file)])
    assert run.exit_code == 0
    assert "Spearman" in run.stdout
    assert "reference" in run.stdout
    assert "percent" in run.stdout


def test_json_on_stdout_and_in_the_file_are_the_same(sts_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.json"
    run = CliRunner().invoke(command, ["student", "--sts", str(sts_file), "--json", "--out", str(out)])
    assert json.loads(run.stdout) == json.loads(out.read_text())
    assert json.loads(run.stdout)["scores"][0]["items"] == 4


def test_repeated_files_are_scored_in_order(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--sts", str(sts_file), "--sts", str(sts_file), "--json"])
    assert len(json.loads(run.stdout)["scores"]) == 2


def test_progress_goes_to_stderr(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--sts", str(sts_file), "--json"])
    assert json.loads(run.stdout)
    assert "pairs" in run.stderr


def test_nothing_to_evaluate_on_is_refused() -> None:
    run = CliRunner().invoke(command, ["student"])
    assert isinstance(run.exception, InputError)
    assert "--sts FILE" in str(run.exception)


def test_an_existing_out_is_refused_before_any_work(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--sts", "absent.tsv", "--out", str(sts_file)])
    assert isinstance(run.exception, InputError)
    assert "--force" in str(run.exception)


def test_a_bad_file_is_refused_before_a_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "open_encoder", lambda _: pytest.fail("loaded a model"))
    run = CliRunner().invoke(command, ["student", "--sts", "absent.tsv"])
    assert isinstance(run.exception, InputError)
    assert "absent.tsv cannot be read" in str(run.exception)
