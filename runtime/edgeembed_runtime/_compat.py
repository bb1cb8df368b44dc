"""What evaluators ask of an encoder beside its vectors. Neither sentence-transformers nor mteb is imported here."""

import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeembed_runtime.bundle import Bundle

_NOT_IN_A_NAME = re.compile(r"[^\w.-]+")


class NoModelCard:
    """Where sentence-transformers' evaluators leave their scores: a bundle's card is written at export."""

    def set_evaluation_metrics(self, *args: object, **options: object) -> None:
        """Drop the scores."""


def mteb_model_meta(bundle: "Bundle") -> Any:
    """Give the name and the revision under which mteb files an encoder's scores.

    The revision is the fingerprint: mteb keeps scores, and would give those of another encoder of the same name.

    Args:
        bundle: What the encoder was loaded from.

    Returns:
        mteb's `ModelMeta`; None if the caller has not imported mteb.
    """
    mteb = sys.modules.get("mteb")
    if mteb is None:
        return None
    name = f"edgeembed/{_NOT_IN_A_NAME.sub('_', bundle.name)}"
    return mteb.models.ModelMeta.create_empty({"name": name, "revision": bundle.fingerprint})
