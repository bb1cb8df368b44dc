"""The encoder that ships inside the wheel."""

from collections.abc import Sequence
from pathlib import Path

from edgeembed_runtime.errors import BundleError
from edgeembed_runtime.manifest import MANIFEST
from edgeembed_runtime.storage.reading import Folder

_MODELS = Path(__file__).parent / "models"


def shipped_bundle() -> Folder:
    """Give the folder of the bundle in the wheel; it may lie in a zip file, if the whole package does.

    Raises:
        BundleError: If this build carries none, or more than one.
    """
    found = [folder for folder in _models() if (folder / MANIFEST).is_file()]
    if not found:
        raise BundleError(
            "this build carries no encoder; expected one inside edgeembed_runtime: "
            "give a bundle, with Encoder.load(path) or --bundle"
        )
    if len(found) > 1:
        names = ", ".join(folder.name for folder in found)
        raise BundleError(f"this build carries {len(found)} encoders ({names}), expected one: remove all but one")
    return found[0]


def _models() -> Sequence[Folder]:
    if _MODELS.is_dir():
        return sorted(_MODELS.iterdir())
    # Imported only inside a zip file: it costs as much as half of numpy.
    from importlib.resources import files

    packed = files("edgeembed_runtime") / "models"
    return list(packed.iterdir()) if packed.is_dir() else []
