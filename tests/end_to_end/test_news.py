"""The program in docs/news.md prints the output that the page shows."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

_TEXT = (Path(__file__).parents[2] / "docs" / "news.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", _TEXT, flags=re.DOTALL | re.MULTILINE)


def _ranked(printed: str) -> list[tuple[float, int, str]]:
    found = re.findall(r"^ *(-?\d\.\d\d) +(\d+) +(.*)$", printed, flags=re.MULTILINE)
    return [(float(score), int(number), story) for score, number, story in found]


def test_news_ranker_prints_the_output_on_its_page(tmp_path: Path) -> None:
    (program,), (feed,), consoles = _blocks("python"), _blocks("xml"), _blocks("console")
    (tmp_path / "news.py").write_text(program, encoding="utf-8")
    (tmp_path / "feed.xml").write_text(feed, encoding="utf-8")
    assert len(consoles) == 4
    for console in consoles:
        command, shown = console.split("\n", 1)
        arguments = shlex.split(command.removeprefix("$ python "))
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        ours, theirs = _ranked(done.stdout), _ranked(shown)
        assert [row[1:] for row in ours] == [row[1:] for row in theirs]
        assert [row[0] for row in ours] == pytest.approx([row[0] for row in theirs], abs=0.02)
