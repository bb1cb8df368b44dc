"""The commands in an environment without extras: `make test-plain`; in other environments these tests are skipped."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]

_REASON = "an environment for development; make test-plain runs this in one without extras"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    is_development = importlib.util.find_spec("hypothesis") is not None
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            if is_development:
                item.add_marker(pytest.mark.skip(reason=_REASON))


@pytest.fixture(scope="session")
def runs() -> Run:
    """Return a function that runs a command, asserts that it succeeds, and returns what it printed to stdout."""

    def call(script: str, *arguments: str | Path) -> str:
        done = _call(script, *arguments)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    return call


@pytest.fixture(scope="session")
def refuses() -> Run:
    """Return a function that runs a command, asserts that it fails with exit code 2, and returns its one line."""

    def call(script: str, *arguments: str | Path) -> str:
        done = _call(script, *arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    return call


def _call(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name(script)), *map(str, arguments)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
