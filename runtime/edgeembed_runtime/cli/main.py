"""The entry point of the command line: parse arguments, run a command, return an exit code."""

import argparse
import contextlib
import errno
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import NoReturn, TextIO

from edgeembed_runtime import __version__
from edgeembed_runtime.cli.bundles import add_info, add_verify
from edgeembed_runtime.cli.encoding import add_classify, add_encode
from edgeembed_runtime.cli.interests import add_interests
from edgeembed_runtime.cli.search import add_index, add_rank, add_search
from edgeembed_runtime.errors import (
    CheckError,
    EdgeEmbedError,
    InputError,
    RoleWarning,
    TruncationWarning,
    UnknownTextWarning,
    one_line,
)
from edgeembed_runtime.termination import Terminated, Terminations, raised_terminations

_NAME = "edgeembed-runtime"
# Exit codes of shells for Ctrl-C and for a closed pipe.
_INTERRUPTED = 130
_PIPE_CLOSED = 141


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments; None means those of the process.

    Returns:
        0 done, 1 a check failed, 2 bad input, 129 SIGHUP, 130 Ctrl-C, 141 stdout was closed by its reader, 143 SIGTERM.
    """
    with _recorded_interrupts() as interrupts, raised_terminations() as terminations:
        try:
            code = _run_until_interrupt(argv, interrupts, terminations)
            terminations.ignore()
        except Terminated as error:
            code = _report("terminated", error.exit_code)
    return code


def _run_until_interrupt(argv: Sequence[str] | None, interrupts: Sequence[int], terminations: Terminations) -> int:
    try:
        return _run(argv, interrupts, terminations)
    except KeyboardInterrupt:
        return _report("interrupted", _INTERRUPTED)
    except ImportError as error:
        if terminations.first:
            raise terminations.first from error
        if interrupts:
            return _report("interrupted", _INTERRUPTED)
        raise


def _run(argv: Sequence[str] | None, interrupts: Sequence[int], terminations: Terminations) -> int:
    try:
        with _one_line_warnings():
            _escape_unencodable(sys.stdout)
            args = _parse(argv)
            _expect_stdout()
            args.run(args)
            sys.stdout.flush()
    except EdgeEmbedError as error:
        if terminations.first and isinstance(error, ImportError):  # the signal interrupted an import
            raise terminations.first from error
        if interrupts:  # Ctrl-C interrupted an import
            raise KeyboardInterrupt from error
        return _report(f"error: {error}", 1 if isinstance(error, CheckError) else 2)
    except OSError as error:
        _discard_stdout()
        if _is_closed_pipe(error):
            return _PIPE_CLOSED
        return _report(f"error: cannot write the result: {error.strerror}; make room or write elsewhere", 2)
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    args, rest = parser.parse_known_args(argv)
    # argparse ends FILE... at the next option and does not parse files after it.
    if rest and (not hasattr(args, "files") or any(word.startswith("-") and word != "-" for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        args.files += rest
    return args


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=_NAME, description="Encode, classify, rank and search texts, offline.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in (add_encode, add_classify, add_rank, add_search, add_index, add_interests, add_info, add_verify):
        add(commands)
    return parser


@contextlib.contextmanager
def _one_line_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: object, **__: object) -> None:
        _report(f"warning: {message}", 0)

    with warnings.catch_warnings():
        for category in (RoleWarning, TruncationWarning, UnknownTextWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


def _expect_stdout() -> None:
    if sys.stdout is None:
        raise InputError("stdout is closed, expected a place to write the result; leave it open or redirect it")


@contextlib.contextmanager
def _recorded_interrupts() -> Iterator[list[int]]:
    """Yield a list to which every Ctrl-C is appended: one during the import of a C extension raises ImportError.

    A Ctrl-C that is ignored, as in the background of a script, stays ignored, and one that is handled outside of Python
    stays handled there. Outside the main thread this has no effect.
    """
    received: list[int] = []

    def record(number: int, _frame: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    previous = signal.getsignal(signal.SIGINT)
    is_recorded = False
    with contextlib.suppress(ValueError):  # not in the main thread: no Ctrl-C arrives here
        if previous not in (None, signal.SIG_IGN):
            signal.signal(signal.SIGINT, record)
            is_recorded = True
    try:
        yield received
    finally:
        if is_recorded:
            signal.signal(signal.SIGINT, previous)


def _escape_unencodable(stream: TextIO) -> None:
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def _is_closed_pipe(error: OSError) -> bool:
    # Windows reports a pipe that its reader closed as an invalid argument.
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)


def _discard_stdout() -> None:
    """Discard buffered output, about which the interpreter would report an error at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _report(message: str, code: int) -> int:
    if sys.stderr is not None:
        sys.stderr.write(f"{_NAME}: {one_line(message)}\n")
    return code
