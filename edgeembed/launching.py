"""How this process was started."""

import os

from edgeembed_runtime.errors import InputError


def refuse_several_processes() -> None:
    """Refuse to train in one of several processes: each would do all of the work and write the same files.

    Raises:
        InputError: If a launcher such as torchrun or accelerate started more than one process.
    """
    count = os.environ.get("WORLD_SIZE", "1")
    if count.isdigit() and int(count) > 1:
        raise InputError(
            f"a launcher started {count} processes (WORLD_SIZE={count}), expected one, since training in several "
            "is not supported; start it without torchrun, or with one process (accelerate launch --num_processes 1)"
        )
