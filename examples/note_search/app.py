"""Search a folder of notes by meaning, in a window, or with --query on the terminal.

python -m examples.note_search.app ~/notes
"""

import argparse
import hashlib
import logging
import os
import sys
from pathlib import Path

from edgeembed_runtime import Hit, InputError

from .notes import Notes

_SHOWN_CHARACTERS = 200


def default_index_folder(notes: Path) -> Path:
    """Return the folder of the index of a folder of notes, in the user's home."""
    path = notes.resolve()
    return Path.home() / ".note_search" / f"{path.name}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"


def format_hit(hit: Hit) -> str:
    """Return a hit on one line: score, path, and the beginning of the passage that matches."""
    text = hit.text if hit.passage is None else hit.passage.text
    return f"{hit.score:.3f}  {hit.id}  {' '.join(text.split())[:_SHOWN_CHARACTERS]}"


def main() -> None:
    """Run the app."""
    parser = argparse.ArgumentParser(prog="note_search", description="Search a folder of notes by meaning.")
    parser.add_argument("folder", type=Path, help="a folder of .md and .txt files")
    parser.add_argument("--index", type=Path, help="where the index is saved (default: below ~/.note_search)")
    parser.add_argument("--query", help="print the hits and exit, without a window")
    args = parser.parse_args()
    logging.basicConfig(format="%(message)s")
    try:
        notes = Notes(args.folder, args.index or default_index_folder(args.folder))
    except InputError as error:
        sys.exit(f"error: {error}")
    if args.query is not None:
        print(notes.refresh(), file=sys.stderr)
        print("\n".join(map(format_hit, notes.search(args.query))))
        return
    from .window import run_window  # tkinter is not needed for --query

    run_window(notes)


if __name__ == "__main__":
    main()
