"""Training in the processes that accelerate or torchrun start: each encodes an equal share of every batch.

Every process computes the loss of the whole batch, with gradients for its own rows. The sum of the gradients over the
processes is the gradient that one process would compute. Importable without torch.
"""

from __future__ import annotations

import atexit
import os
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from edgeembed_runtime.errors import EdgeEmbedError, InputError

if TYPE_CHECKING:
    import torch
    from torch import nn

# The others wait while one process encodes the corpus with the teacher, which may take days. A process that dies is
# noticed at once, by its closed connections and by the launcher.
_TIMEOUT = timedelta(days=14)


class LostProcessError(EdgeEmbedError):
    """Raised when another process has ended before its time, or cannot be reached."""


def process_count() -> int:
    """Return the number of processes that a launcher started, on all machines; 1 without a launcher."""
    count = os.environ.get("WORLD_SIZE", "1")
    return int(count) if count.isdigit() and int(count) > 1 else 1


def process_index() -> int:
    """Return the index of this process, from 0."""
    return int(os.environ.get("RANK", "0")) if process_count() > 1 else 0


def check_single_process() -> None:
    """Check that a launcher did not start several processes: each would do all the work and write the same files.

    Raises:
        InputError: If a launcher such as torchrun or accelerate started more than one process.
    """
    if process_count() > 1:
        raise InputError(
            f"a launcher started {process_count()} processes (WORLD_SIZE={process_count()}); expected one, since only "
            "distill trains in several: start it without torchrun, or with accelerate launch --num_processes 1"
        )


@contextmanager
def connected_processes() -> Iterator[None]:
    """Connect the processes that a launcher started; do nothing without one.

    Raises:
        LostProcessError: If the connection to another process fails in the block.
    """
    if process_count() == 1:
        yield
        return
    from accelerate import PartialState

    from edgeembed.hardware import default_device

    is_cpu = default_device() == "cpu"
    if is_cpu:  # accelerate would call it cpu:0, a name that the trainer cannot load a checkpoint to
        os.environ.setdefault("ACCELERATE_TORCH_DEVICE", "cpu")
    state = PartialState(cpu=is_cpu, timeout=_TIMEOUT)
    # Its threads would otherwise outlive the interpreter, which ends a finished process with "terminate called".
    atexit.register(state.destroy_process_group)
    try:
        yield
        state.wait_for_everyone()
    except RuntimeError as error:
        # The errors of gloo have no class of their own.
        if "distributed" not in Path(traceback.extract_tb(error.__traceback__)[-1].filename).parts:
            raise
        reason = " ".join(str(error).split())
        raise LostProcessError(
            f"process {process_index() + 1} of {process_count()} lost the connection to another one ({reason}); see "
            "that one's message, and go on with --resume"
        ) from error


@contextmanager
def main_process_first() -> Iterator[None]:
    """Run the block in the main process, and then in the others, which find there what it has stored."""
    if process_count() == 1:
        yield
        return
    from accelerate import PartialState

    with PartialState().main_process_first():
        yield


def gather_rows(own: torch.Tensor) -> torch.Tensor:
    """Return the rows of all processes, with gradients for those of this process.

    Args:
        own: The rows of this process (rows, ...), as many as those of any other.
    """
    if process_count() == 1:
        return own
    import torch
    import torch.distributed as dist

    gathered = [torch.empty_like(own) for _ in range(process_count())]
    dist.all_gather(gathered, own.detach().contiguous())
    gathered[process_index()] = own
    return torch.cat(gathered)


def mean_over_processes(own: torch.Tensor, count: int) -> torch.Tensor:
    """Return the mean over the items of all processes, with gradients for those of this process.

    Args:
        own: The mean over the items of this process, a float scalar.
        count: Number of these items.
    """
    if process_count() == 1:
        return own
    import torch
    import torch.distributed as dist

    total = torch.stack([own.detach() * count, own.new_tensor(count)])
    dist.all_reduce(total)
    mean, share = total[0] / total[1].clamp_min(1), own * count / total[1].clamp_min(1)
    value: torch.Tensor = share + (mean - share.detach())
    return value


def sum_gradients(weights: Iterable[nn.Parameter]) -> None:
    """Replace the gradients of weights by their sums over the processes."""
    if process_count() == 1:
        return
    import torch.distributed as dist
    from torch.nn.utils import parameters_to_vector, vector_to_parameters

    gradients = [weight.grad for weight in weights if weight.grad is not None]
    if gradients:
        vector = parameters_to_vector(gradients)
        dist.all_reduce(vector)
        vector_to_parameters(vector, gradients)
