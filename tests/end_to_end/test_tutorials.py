"""The commands and programs in docs/tutorials/ run, one after another, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def _blocks(page: str, language: str) -> list[str]:
    text = (_TUTORIALS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def _run(commands: str, place: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        ["bash", "-ec", commands], check=False, cwd=place, env=environment, capture_output=True, text=True
    )


def test_multilingual_ranker_finds_unseen_translations(tmp_path: Path) -> None:
    translations, rank = _blocks("multilingual.md", "python")
    (tmp_path / "translations.py").write_text(translations, encoding="utf-8")
    (tmp_path / "rank.py").write_text(rank, encoding="utf-8")
    done = _run("\n".join(_blocks("multilingual.md", "bash")), tmp_path)
    assert not done.returncode, done.stderr
    assert re.search(r"^\d\.\d\d  The farmer paints a picture at the beach\.$", done.stdout, flags=re.MULTILINE)
    found = {
        language: int(count) for language, count in re.findall(r"^(de|fr): (\d+) of 180$", done.stdout, re.MULTILINE)
    }
    assert set(found) == {"de", "fr"}
    assert min(found.values()) >= 170


def test_shrunk_model_finds_the_document_that_its_page_shows(tmp_path: Path) -> None:
    (documents,) = (block for block in _blocks("shrink.md", "text") if block.startswith("Open a file"))
    (tmp_path / "documents.txt").write_text(documents, encoding="utf-8")
    done = _run("\n".join(_blocks("shrink.md", "bash")), tmp_path)
    assert not done.returncode, done.stderr
    assert done.stdout.rstrip().splitlines()[-2].endswith("Run a function in another thread.")


def test_strict_gate_writes_nothing(tmp_path: Path) -> None:
    (console,) = _blocks("shrink.md", "console")
    done = _run(console.partition("\n")[0].removeprefix("$ "), tmp_path)
    assert done.returncode == 1
    assert "nothing was written" in done.stderr
    assert not (tmp_path / "strict").exists()
