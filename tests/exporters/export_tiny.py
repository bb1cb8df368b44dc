"""Exports the tiny model in a process of its own: `python export_tiny.py whole|killed FOLDER`.

`whole` writes the bundle to FOLDER. `killed` exports to folders in FOLDER again and again, each time in a forked child
that kills itself as it touches one file or another there; it prints what is left: none, the old bundle, the new one.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conftest import SENTENCES, make_model  # type: ignore[import-not-found]  # beside this file
from edgeembed_exporters import BundleSettings, export, exporting, inspect_model
from edgeembed_exporters.onnx.tracing import build_graph, trace
from edgeembed_runtime import Bundle
from sentence_transformers import SentenceTransformer

# The bundle appears in the last of an export's hundreds of steps, and its first one's folder in the first.
_FIRST, _BETWEEN, _LAST = 2, 6, 10


def write(model: SentenceTransformer, out: Path, *, name: str | None = None, force: bool = False) -> None:
    export(model, out, BundleSettings(precision="int8", min_cosine=0.9, name=name), sentences=SENTENCES, force=force)


def watch(folder: Path, touched: Callable[[], None]) -> None:
    """Call a function just before anything is done to a file below a folder, or two names are exchanged by C."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "ctypes.dlopen" or (arguments and str(folder) in str(arguments[0])):
            touched()

    sys.addaudithook(hook)


def run(model: SentenceTransformer, folder: Path, kill_at: int | None, **options: Any) -> int:
    """Export in a child that is killed at a step, and return the number of its steps."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        steps = 0

        def touched() -> None:
            nonlocal steps
            if steps == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            steps += 1

        watch(folder, touched)
        write(model, folder / "b", **options)
        os.write(writing, str(steps).encode())
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        steps = int(said.read() or 0)
    assert steps > 0 if kill_at is None else os.WTERMSIG(status) == signal.SIGKILL
    return steps


def left(folder: Path) -> str:
    if not (folder / "b").exists():
        return "none"
    return Bundle.open(folder / "b", verify=True).name


def kill_everywhere(model: SentenceTransformer, folder: Path, prepare: Callable[[Path], object]) -> list[str]:
    def fresh(name: str) -> Path:
        made = folder / name
        made.mkdir(parents=True)
        prepare(made / "b")
        return made

    steps = run(model, fresh("all"), None, name="new", force=True)
    between = range(_FIRST, steps - _LAST, (steps - _LAST - _FIRST) // _BETWEEN)
    found = []
    for step in (*range(_FIRST), *between, *range(steps - _LAST, steps)):
        place = fresh(str(step))
        run(model, place, step, name="new", force=True)
        found.append(left(place))
    return found


def main(command: str, folder: Path) -> None:
    model = make_model()
    if command == "whole":
        write(model, folder)
        return
    source = inspect_model(model)
    traced = trace(build_graph(source), source.max_seq_length)
    exporting.TRACERS["torch"] = lambda *_: traced  # most of an export's time
    old = folder / "old"
    if os.fork() == 0:  # so that this process starts no threads that its children would miss
        write(model, old, name="old")
        os._exit(0)
    os.wait()
    new = kill_everywhere(model, folder / "new", lambda _: None)
    replacing = kill_everywhere(model, folder / "replacing", lambda out: shutil.copytree(old, out))
    print(json.dumps({"new": new, "replacing": replacing}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
