"""The examples of the runtime's README, run from top to bottom."""

import importlib.metadata
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from edgeembed_runtime.cli import main

_CHECKOUT = Path(__file__).parents[2] / "runtime" / "README.md"


def _readme() -> str:
    if _CHECKOUT.is_file():
        return _CHECKOUT.read_text(encoding="utf-8")
    text = importlib.metadata.metadata("edgeembed-runtime").get_payload()  # type: ignore[attr-defined]
    return str(text)


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", _readme(), flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_examples_run_twice(place: Path, shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = _blocks("python")
    assert len(blocks) >= 8
    for _ in range(2):
        namespace: dict[str, object] = {}
        for block in blocks:
            for _ in range(2):
                exec(compile(block, "README.md", "exec"), namespace)  # noqa: S102 - text of this repository
    first = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(r"0\.\d\d Open a text file and read its lines\.", first)


def test_command_examples_run_twice(place: Path, shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "notes.txt").write_text("How to bake rye bread\nShares fell on Monday.\n", encoding="utf-8")
    commands = [line[2:] for block in _blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) >= 8
    for command in commands * 2:
        name, *arguments = shlex.split(command)
        assert name == "edgeembed-runtime"
        assert main(arguments) == 0, f"{command}: {capsys.readouterr().err}"
        assert capsys.readouterr().out, command


@pytest.mark.filterwarnings("ignore::edgeembed_runtime.UnknownTextWarning")  # the tiny vocabulary has few of the words
def test_classifier_example_runs_twice(
    place: Path, make_classifier: Callable[[Path], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    make_classifier(place / "intents")
    (block,) = (block for block in _blocks("py") if "Classifier(" in block)
    (command,) = re.findall(r"`edgeembed-runtime (classify [^`]+)`", _readme())
    for _ in range(2):
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - text of this repository
        assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out
