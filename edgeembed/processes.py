"""Processes that train together, as torchrun and accelerate start them.

The main process prepares, evaluates and writes. Each process encodes its own rows of every batch: with N processes, the
first one has the rows 0, N, 2N, and so on. Every process computes the loss of the whole batch, with gradients for its
own rows; the sum of the gradients over the processes is the gradient that one process would compute.
"""

import io
import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from accelerate import PartialState
from edgeembed_runtime.errors import InputError
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from transformers import PreTrainedModel

from edgeembed.hardware import default_device
from edgeembed.launchers import LostProcessError, OtherProcessError, launched_processes

T = TypeVar("T")

# The others wait while one process encodes the corpus with the teacher, which may take days. A process that dies is
# noticed at once, by its closed connections and by the launcher.
_TIMEOUT = timedelta(days=14)
_SHARED_FILE = ".shared-by-processes"


def process_count() -> int:
    """Return the number of processes that train together; 1 without a launcher."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def process_index() -> int:
    """Return the index of this process, from 0."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


@contextmanager
def joined_processes() -> Iterator[None]:
    """Connect the processes that a launcher started; do nothing without one.

    Raises:
        LostProcessError: If the connection to another process fails in the block.
    """
    if launched_processes() == 1:
        yield
        return
    is_cpu = default_device() == "cpu"
    if is_cpu:
        # accelerate would call it cpu:0, a name that the trainer cannot load a checkpoint to.
        os.environ.setdefault("ACCELERATE_TORCH_DEVICE", "cpu")
    try:
        PartialState(cpu=is_cpu, timeout=_TIMEOUT)
        yield
        dist.barrier()
    except RuntimeError as error:
        if not _failed_in_collective(error):
            raise
        reason = " ".join(str(error).split())
        raise LostProcessError(
            f"process {process_index() + 1} of {process_count()} lost the connection to another one ({reason}); see "
            "that one's message, and go on with --resume"
        ) from error


def _failed_in_collective(error: RuntimeError) -> bool:
    """Return whether an error was raised by a collective operation: gloo's errors have no class of their own."""
    *_, frame = traceback.extract_tb(error.__traceback__)
    return "distributed" in Path(frame.filename).parts


def on_main_process(function: Callable[[], T]) -> T:
    """Call a function in the main process, and return its result in all.

    Args:
        function: The function. Its result is pickled for the other processes, with tensors on the CPU.

    Raises:
        OtherProcessError: In the other processes, if the function raised an error in the main one.
    """
    if process_count() == 1:
        return function()
    if process_index() == 0:
        buffer = io.BytesIO()
        try:
            result = function()
            torch.save(result, buffer)
        except Exception:
            dist.broadcast_object_list([None])
            raise
        dist.broadcast_object_list([buffer.getvalue()])
        return result
    received: list[Any] = [None]
    dist.broadcast_object_list(received)
    if received[0] is None:
        raise OtherProcessError("the main process failed; see its message")
    loaded: T = torch.load(io.BytesIO(received[0]), map_location="cpu", weights_only=False)
    return loaded


def register_outputs(model: nn.Module) -> None:
    """Let a model from another process return hidden states: transformers 5 notes in a constructor that a class can."""
    with torch.device("meta"):
        for module in model.modules():
            if isinstance(module, PreTrainedModel):
                type(module)(module.config)


def check_shared_folder(folder: Path) -> None:
    """Check that all processes see a folder of the main process; create it if it does not exist.

    Args:
        folder: The folder.

    Raises:
        InputError: In the main process, if another one does not see the folder.
        OtherProcessError: In the other processes then.
    """
    if process_count() == 1:
        return
    file = folder / _SHARED_FILE
    on_main_process(lambda: _create(file))
    seen: list[Any] = [None] * process_count()
    dist.all_gather_object(seen, (file.is_file(), os.uname().nodename if hasattr(os, "uname") else ""))
    on_main_process(file.unlink)
    blind = [f"{index + 1} (on {host})" for index, (sees, host) in enumerate(seen) if not sees]
    if not blind:
        return
    if process_index():
        raise OtherProcessError("the main process reports the folder")
    raise InputError(
        f"{folder} is not visible to process {', '.join(blind)} of {process_count()}; expected a folder that all "
        "machines share: mount it everywhere, or choose another --cache"
    )


def _create(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def own_rows(rows: int) -> int:
    """Return the number of rows that this process has of a batch."""
    return len(range(process_index(), rows, process_count()))


def gather_rows(own: torch.Tensor, rows: int) -> torch.Tensor:
    """Return the rows of all processes in the order of the batch, with gradients for those of this process.

    Args:
        own: The rows of this process (own_rows, dim). A process without a row passes any row, which is left out.
        rows: Number of rows of the batch.

    Returns:
        (rows, dim).
    """
    count = process_count()
    if count == 1:
        return own
    height = -(-rows // count)
    padded = nn.functional.pad(own, (0, 0, 0, height - len(own))).contiguous()
    gathered = [torch.empty_like(padded) for _ in range(count)]
    dist.all_gather(gathered, padded.detach())
    gathered[process_index()] = padded
    ordered: torch.Tensor = torch.stack(gathered, dim=1).flatten(0, 1)
    return ordered[:rows]


def mean_over_processes(own: torch.Tensor, count: int) -> torch.Tensor:
    """Return the mean over the items of all processes, with gradients for those of this process.

    Args:
        own: The mean over the items of this process, a float scalar; any finite value if it has none.
        count: Number of these items.
    """
    if process_count() == 1:
        return own
    total = torch.stack([own.detach() * count, own.new_tensor(count)])
    dist.all_reduce(total)
    mean, share = total[0] / total[1].clamp_min(1), own * count / total[1].clamp_min(1)
    value: torch.Tensor = share + (mean - share.detach())
    return value


def union_over_processes(ids: torch.Tensor, size: int) -> torch.Tensor:
    """Return the distinct ids of all processes, sorted.

    Args:
        ids: The ids of this process, int64 of any shape, below `size`.
        size: Number of possible ids.

    Returns:
        int64 (distinct ids,).
    """
    union: torch.Tensor
    if process_count() == 1:
        union = torch.unique(ids)
        return union
    uses = torch.bincount(ids.flatten(), minlength=size)
    dist.all_reduce(uses)
    union = uses.nonzero()[:, 0]
    return union


def broadcast_weights(weights: Iterable[torch.Tensor]) -> None:
    """Overwrite weights with those of the main process."""
    if process_count() > 1:
        for weight in weights:
            dist.broadcast(weight.detach(), src=0)


def sum_gradients(weights: Iterable[nn.Parameter]) -> None:
    """Replace the gradients of weights by their sums over the processes."""
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    if process_count() > 1 and gradients:
        vector = parameters_to_vector(gradients)
        dist.all_reduce(vector)
        vector_to_parameters(vector, gradients)
