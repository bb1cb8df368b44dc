"""What an encoder was exported for, and whether that is what it is used for."""

import warnings
from typing import Literal

from edgeembed_runtime._warnings import caller_stacklevel
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import RoleWarning


def check_role(encoder: Encoder, role: Literal["semantic", "relevance"]) -> None:
    """Warn of an encoder that was exported for another role: its prompts and its length are that one's.

    Args:
        encoder: What is to give the vectors.
        role: What it is to be used for.

    Warns:
        RoleWarning: If the bundle says that it was made for other roles alone.
    """
    bundle = encoder.bundle
    if role in bundle.roles:
        return
    warnings.warn(
        f"{bundle.name} was exported for the role {', '.join(bundle.roles)}, and this ranker's is {role}; expected a "
        f"bundle for it: export with --role {role}, or --role both for one download",
        RoleWarning,
        stacklevel=caller_stacklevel(),
    )
