"""The encoders that ship inside the wheel."""

import os
from collections.abc import Sequence
from pathlib import Path

from edgeembed_runtime.errors import BundleError, InputError
from edgeembed_runtime.manifest import MANIFEST
from edgeembed_runtime.storage.files import Folder, is_dir

DEFAULT = "mini"
"""The one that is taken where none is named."""

_MODELS = Path(__file__).parent / "models"


def find_bundle(name: str | None = None) -> tuple[Folder, bool]:
    """Find a bundle by its name or its path.

    Args:
        name: The name of an encoder in the wheel, or the path of a folder. A name in the wheel comes first: `./mini` is
            the folder. None stands for the default encoder, or the only one that this build carries.

    Returns:
        The bundle's folder, and whether it is in the wheel.

    Raises:
        InputError: If there is no encoder of this name in the wheel, and no such folder.
        BundleError: If none is named, and this build carries none, or several without the default one.
    """
    if name is None or name in (found := _bundles()):
        return builtin_bundle(name), True
    if name and (os.sep in name or "/" in name or is_dir(Path(name))):
        return Path(name), False
    import difflib  # an error may take its time

    close = difflib.get_close_matches(name.lower(), found, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    names = ", ".join(map(repr, found)) or "(this build carries none)"
    raise InputError(
        f"{name!r} is no encoder in the wheel and no folder; {hint}expected one of {names}, or the path of a bundle"
    )


def builtin_bundle(name: str | None = None) -> Folder:
    """Return the folder of a bundle in the wheel, which lies in a zip file if the whole package does.

    Args:
        name: Its name; None stands for the default one, or the only one that this build carries.

    Returns:
        The folder.

    Raises:
        InputError: If there is none of this name.
        BundleError: If none is named, and this build carries none, or several without the default one.
    """
    found = _bundles()
    if name is not None and name not in found:
        carried = f"one of {', '.join(map(repr, found))}" if found else "none, since this build carries no encoder"
        raise InputError(f"there is no encoder {name!r} in the wheel; expected {carried}")
    if not found:
        raise BundleError(
            "this build carries no encoder; expected one inside edgeembed_runtime: "
            "give a bundle, with Encoder(path) or --bundle"
        )
    if name is None and DEFAULT not in found and len(found) > 1:
        raise BundleError(
            f"this build carries {len(found)} encoders ({', '.join(found)}) and none is {DEFAULT}: name one"
        )
    return found[name or (DEFAULT if DEFAULT in found else next(iter(found)))]


def builtin_names() -> list[str]:
    """Give the names of the encoders in the wheel."""
    return list(_bundles())


def _bundles() -> dict[str, Folder]:
    return {folder.name: folder for folder in _models() if (folder / MANIFEST).is_file()}


def _models() -> Sequence[Folder]:
    if _MODELS.is_dir():
        return sorted(_MODELS.iterdir())
    # Imported only inside a zip file: it costs as much as half of numpy.
    from importlib.resources import files

    packed = files("edgeembed_runtime") / "models"
    return sorted(packed.iterdir(), key=lambda folder: folder.name) if packed.is_dir() else []
