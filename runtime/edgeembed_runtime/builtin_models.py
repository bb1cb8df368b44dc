"""The encoders inside the wheel."""

import os
import re
from collections.abc import Sequence

from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.errors import BundleError, InputError
from edgeembed_runtime.manifest import MANIFEST
from edgeembed_runtime.storage.folder import DiskFolder, Folder

DEFAULT = "mini"
"""The encoder used if none is named."""

_MODELS = DiskFolder(os.path.dirname(__file__)) / "models"  # noqa: PTH120
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)  # an organization and a repository


def open_bundle(bundle: Bundle | str | os.PathLike[str] | None, *, is_classifier: bool) -> tuple[Bundle, bool]:
    """Open the bundle of an encoder or of a classifier, and check that its files are complete.

    Args:
        bundle: The name of a built-in encoder, the path of a folder, or an opened bundle; None means the default
            encoder.
        is_classifier: Whether a classifier is expected.

    Returns:
        The bundle, and True if it is inside the wheel.

    Raises:
        InputError: If there is no such bundle.
        BundleError: If it cannot be opened, or is of the other kind.
    """
    is_builtin = False
    if bundle is None or isinstance(bundle, str):
        folder, is_builtin = find_bundle(bundle)
        opened = Bundle.open(folder)
    elif isinstance(bundle, Bundle | os.PathLike):
        opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
    else:
        raise InputError(
            f"the bundle is {type(bundle).__name__}, expected the name of a built-in encoder, the path of a "
            "bundle, or a Bundle"
        )
    if opened.is_classifier and not is_classifier:
        raise BundleError(f"{opened.path} is a classifier, expected an encoder; open it with Classifier")
    if is_classifier and not opened.is_classifier:
        raise BundleError(f"{opened.path} is an encoder, expected a classifier; open it with Encoder")
    opened.check_sizes()
    return opened, is_builtin


def find_bundle(name: str | None = None) -> tuple[Folder, bool]:
    """Return the folder of a bundle given by name or path, and whether it is a built-in one.

    Args:
        name: The name of a built-in encoder, or the path of a folder. Names have precedence: `./mini` is a folder.
            None means the default encoder, or the only one in this build.

    Returns:
        The bundle's folder, and True if it is inside the wheel.

    Raises:
        InputError: If `name` is neither a built-in encoder nor a folder.
        BundleError: If `name` is None and this build contains no encoder, or several without the default one.
    """
    if name is None or name in (bundles := _bundles()):
        return builtin_bundle(name), True
    if _HUB_ID.fullmatch(name) and not DiskFolder(name).is_dir():
        raise InputError(
            f"{name!r} is neither a folder nor a built-in encoder; to use a model of the Hugging Face Hub, download it "
            f"first: hf download {name} --local-dir FOLDER"
        )
    if name and (os.sep in name or "/" in name or DiskFolder(name).is_dir()):
        return DiskFolder(name), False
    import difflib  # only needed for an error

    close = difflib.get_close_matches(name.lower(), bundles, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    names = ", ".join(map(repr, bundles)) or "(this build contains none)"
    raise InputError(
        f"{name!r} is neither a built-in encoder nor a folder; {hint}expected one of {names}, or the path of a bundle"
    )


def builtin_bundle(name: str | None = None) -> Folder:
    """Return the folder of a built-in bundle; it is inside a zip file if the package is.

    Args:
        name: The encoder's name. None means the default encoder, or the only one in this build.

    Returns:
        The folder.

    Raises:
        InputError: If there is no built-in encoder of this name.
        BundleError: If `name` is None and this build contains no encoder, or several without the default one.
    """
    bundles = _bundles()
    if name is not None and name not in bundles:
        names = ", ".join(map(repr, bundles))
        expected = f"one of {names}" if bundles else "none, because this build contains no encoder"
        raise InputError(f"there is no built-in encoder {name!r}; expected {expected}")
    if not bundles:
        raise BundleError("this build contains no encoder; pass the path of a bundle, with Encoder(path) or --bundle")
    if name is None and DEFAULT not in bundles and len(bundles) > 1:
        raise BundleError(
            f"this build contains {len(bundles)} encoders ({', '.join(bundles)}) but not {DEFAULT}; name one of them"
        )
    return bundles[name or (DEFAULT if DEFAULT in bundles else next(iter(bundles)))]


def builtin_names() -> list[str]:
    """Return the names of the built-in encoders."""
    return list(_bundles())


def _bundles() -> dict[str, Folder]:
    return {folder.name: folder for folder in _models() if (folder / MANIFEST).is_file()}


def _models() -> Sequence[Folder]:
    if _MODELS.is_dir():
        return [_MODELS / name for name in _MODELS.names()]
    # Imported only inside a zip file, because it takes half as long to import as numpy.
    from importlib.resources import files

    packed = files("edgeembed_runtime") / "models"
    return sorted(packed.iterdir(), key=lambda folder: folder.name) if packed.is_dir() else []
