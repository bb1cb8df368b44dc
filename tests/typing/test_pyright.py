"""pyright accepts and rejects what mypy does; editors complete keywords by it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_pyright_rejects_the_ignored_lines_and_no_other() -> None:
    pytest.importorskip("pyright", reason="pyright is not installed")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project"]
    done = subprocess.run([*command, Path(__file__).parent], capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    assert [f"{each['range']['start']['line'] + 1}: {each['message']}" for each in report["generalDiagnostics"]] == []
