"""Pictures of terminals."""

import re
from xml.etree import ElementTree

import pytest

from experiments.recordings import PICTURES, SESSIONS, Session, draw_transcript, transcript

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLE = Session(
    "example", "An <example>", ('python -c "print({1}); print(2)"', "cat note.txt"), {"note.txt": "a & b\n"}
)


def test_commands_run_in_a_folder_with_the_files() -> None:
    assert transcript(EXAMPLE) == '$ python -c "print({1}); print(2)"\n{1}\n2\n\n$ cat note.txt\na & b'


def test_a_terminal_shows_and_describes_its_text_and_loads_nothing() -> None:
    text = "$ first\n{1} <a> & b\n\n$ second"
    svg = draw_transcript(EXAMPLE, text)
    assert svg == draw_transcript(EXAMPLE, text)
    root = ElementTree.fromstring(svg)  # noqa: S314  # drawn here
    assert root.findtext(f"{SVG}title") == "An <example>"
    assert root.findtext(f"{SVG}desc") == text
    shown = ["".join(each.itertext()).replace("\xa0", " ") for each in root.iter(f"{SVG}text")]
    assert {"$ first", "{1} <a> & b", "$ second"} <= set(shown)
    assert "@font-face" not in svg
    assert "url(http" not in svg


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.name)
def test_the_committed_picture_has_the_commands_of_its_session(session: Session) -> None:
    recorded = committed(session)
    assert re.findall(r"^\$ (.*)$", recorded, re.MULTILINE) == list(session.commands)


def test_the_recorded_search_is_what_the_commands_print_today() -> None:
    (session,) = (each for each in SESSIONS if each.name == "terminal-search")
    recorded, today = (re.sub(r"0\.\d+", "score", text) for text in (committed(session), transcript(session)))
    assert recorded == today, "run python -m experiments.recordings terminal-search"


def committed(session: Session) -> str:
    root = ElementTree.parse(PICTURES / f"{session.name}.svg").getroot()  # noqa: S314  # a file of the repository
    return root.findtext(f"{SVG}desc") or ""
