"""What a launcher such as torchrun or accelerate states about this process; importable without torch."""

import os

from edgeembed_runtime.errors import EdgeEmbedError, InputError

RUN_ID = "edgeembed"
"""The elastic launcher's name of the processes that `--processes` starts."""


class OtherProcessError(EdgeEmbedError):
    """Raised in a process to end it because of an error that the main process reports."""


class LostProcessError(EdgeEmbedError):
    """Raised when another process has ended before its time, or cannot be reached."""


def launched_processes() -> int:
    """Return the number of processes that a launcher started, on all machines; 1 without a launcher."""
    count = os.environ.get("WORLD_SIZE", "1")
    return int(count) if count.isdigit() and int(count) > 1 else 1


def is_main_process() -> bool:
    """Return whether this is the first of the processes that a launcher started, or the only one."""
    return launched_processes() == 1 or os.environ.get("RANK") == "0"


def is_launched() -> bool:
    """Return whether `--processes` started this process, so that the command that waits for it prints what ends it."""
    return os.environ.get("TORCHELASTIC_RUN_ID") == RUN_ID


def check_single_process() -> None:
    """Check that a launcher did not start several processes: each would do all the work and write the same files.

    Raises:
        InputError: If a launcher such as torchrun or accelerate started more than one process.
    """
    count = launched_processes()
    if count > 1:
        raise InputError(
            f"a launcher started {count} processes (WORLD_SIZE={count}); expected one, since only distill trains in "
            "several: start it without torchrun, or with one process (accelerate launch --num_processes 1)"
        )
