"""The demo on a sample of its corpus, with the real teacher."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_demo_runs_all_steps(tmp_path: Path) -> None:
    settings = ["corpus.limit=1500", "vocabulary.size=2000", "stages.epochs=0.5"]
    overrides = [part for setting in settings for part in ("--set", setting)]
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("edgeembed")),
            "demo",
            "--out",
            str(tmp_path / "demo"),
            "--json",
            *overrides,
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["student"]["sentences"] == 1350
    assert result["student"]["dimension"] == 128
    assert len(result["answers"]) == 3
    assert all(len(answer["hits"]) == 3 for answer in result["answers"])
    teacher, student = (result["costs"]["derived"][name] for name in ("teacher", "student"))
    assert student["size_bytes"] < teacher["size_bytes"] / 10
    assert student["median_ms"] > 0
    assert 0 < student["quality_percent"] < 100
    assert (tmp_path / "demo" / "costs.html").is_file()
    assert (tmp_path / "demo" / "bundle" / "edgeembed.json").is_file()
    assert (tmp_path / "demo" / "index" / "index.json").is_file()
