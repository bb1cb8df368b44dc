"""Attributes that the evaluators of sentence-transformers and mteb expect of an encoder; neither is imported here."""

import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeembed_runtime.bundle import Bundle

_INVALID_IN_NAME = re.compile(r"[^\w.-]+")


class NoModelCard:
    """A model card that discards the scores of sentence-transformers' evaluators."""

    def set_evaluation_metrics(self, *args: object, **options: object) -> None:
        """Discard the scores; a bundle's card is written at export."""


def mteb_model_meta(bundle: "Bundle") -> Any:
    """Return the name and the revision under which mteb stores an encoder's scores.

    The revision is the fingerprint, because mteb caches scores and would reuse those of another encoder of
    the same name.

    Args:
        bundle: The encoder's bundle.

    Returns:
        mteb's `ModelMeta`, or None if the caller has not imported mteb.
    """
    mteb = sys.modules.get("mteb")
    if mteb is None:
        return None
    name = f"edgeembed/{_INVALID_IN_NAME.sub('_', bundle.name)}"
    return mteb.models.ModelMeta.create_empty({"name": name, "revision": bundle.fingerprint})
