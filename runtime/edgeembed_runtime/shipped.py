"""The encoder that ships inside the wheel."""

from pathlib import Path

from edgeembed_runtime.errors import BundleError
from edgeembed_runtime.manifest import MANIFEST

_MODELS = Path(__file__).parent / "models"


def shipped_bundle() -> Path:
    """Give the folder of the bundle in the wheel.

    Raises:
        BundleError: If this build carries none, or more than one.
    """
    found = sorted(path.parent for path in _MODELS.glob(f"*/{MANIFEST}"))
    if not found:
        raise BundleError(
            "this build carries no encoder; expected one inside edgeembed_runtime: "
            "give a bundle, with Encoder.load(path) or --bundle"
        )
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise BundleError(f"this build carries {len(found)} encoders ({names}), expected one: remove all but one")
    return found[0]
