"""Launchers that start several processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from edgeembed_runtime.errors import InputError

from edgeembed.arguments import check_single_process
from edgeembed.cli.distill import command as distill
from edgeembed.cli.finetune import command as finetune


def test_several_processes_raise_and_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match=r"a launcher started 2 processes \(WORLD_SIZE=2\); expected one"):
        check_single_process()
    for count in ("1", "", "none"):
        monkeypatch.setenv("WORLD_SIZE", count)
        check_single_process()


def test_training_commands_raise_before_they_read_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    out = str(tmp_path / "out")
    for done in (
        CliRunner().invoke(distill, ["--corpus", "missing.txt", "--out", out]),
        CliRunner().invoke(finetune, ["missing", "--train", "missing.tsv", "--dev", "missing.tsv", "--out", out]),
    ):
        assert isinstance(done.exception, InputError)
        assert "WORLD_SIZE=4" in str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_torchrun_of_two_processes_gets_one_line_of_each_and_no_student(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the small cat sleeps\n" * 20)
    words = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "-m",
        "edgeembed.cli.main",
        "distill",
    ]
    done = subprocess.run(
        [*words, "--corpus", str(tmp_path / "text.txt"), "--out", str(tmp_path / "student")],
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode != 0
    refusals = [line for line in done.stderr.splitlines() if "a launcher started 2 processes" in line]
    assert len(refusals) == 2
    assert not (tmp_path / "student").exists()
    assert not (tmp_path / "student.cache").exists()
