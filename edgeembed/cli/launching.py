"""Start this command line in several processes of this machine with torch's elastic launcher, and end them."""

import contextlib
import logging
import os
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import NoReturn

import click
from edgeembed_runtime.errors import InputError

from edgeembed.launchers import RUN_ID, is_main_process

_LOOPBACK = "127.0.0.1"


def launch(processes: int) -> int:
    """Run this command line in several processes, wait for them, and return their exit code.

    The processes print for themselves. Here only what they cannot say is printed: that one of them was killed.

    Args:
        processes: Number of processes, at least 2.

    Returns:
        0 if each process succeeded, otherwise the exit code of one that failed: 128 plus the number of a signal.

    Raises:
        InputError: If the machine has GPUs, but fewer.
    """
    import torch
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    gpus = torch.cuda.device_count()
    if 0 < gpus < processes:
        raise InputError(f"--processes is {processes}, but each needs a GPU; expected at most {gpus} on this machine")
    _set_defaults(processes)
    logging.disable()  # the launcher's log; our own messages say what happened
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=RUN_ID,
        rdzv_backend="c10d",
        rdzv_endpoint=f"{_LOOPBACK}:0",
        local_addr=_LOOPBACK,
        max_restarts=0,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "edgeembed.cli.main", *sys.argv[1:])
    except SignalException as error:
        happened = "interrupted" if error.sigval == signal.SIGINT else "terminated"
        return _report(f"{happened}; nothing was left half-written", 128 + error.sigval)
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        for rank, code in codes.items():
            number = -code if code < 0 else code - 128
            if number > 0 and number != signal.SIGPIPE:  # the reader of the output went away, and reads no message
                return _report(
                    f"process {rank + 1} of {processes} was killed by {signal.Signals(number).name}; the same command "
                    "with --resume continues from the last checkpoint",
                    128 + number,
                )
        return max(codes.values())
    return 0


def run_in_process(run: Callable[[], int]) -> NoReturn:
    """Run the command line in one of several processes, and end this process with the exit code.

    Args:
        run: Runs the command line, and returns its exit code.
    """
    if not is_main_process():
        warnings.simplefilter("ignore")  # the main process shows the same ones
        logging.disable()
    try:
        code = run()
    except BaseException:  # noqa: BLE001  # as the interpreter would
        traceback.print_exc()
        code = 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    # Without the interpreter's shutdown, which a thread of the process group may abort ("terminate called without an
    # active exception"): finished work would end with the exit code -6.
    os._exit(code)


def _set_defaults(processes: int) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // processes)))
    # gloo looks up the host's own name for an address otherwise, and a machine may not resolve it.
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
    if loopback:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)


def _report(message: str, code: int) -> int:
    click.echo(f"edgeembed: {message}", err=True)
    return code
