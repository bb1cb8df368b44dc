"""A pytest plugin (`-p no_sockets`) under which no test, and no process that one starts, can open a socket.

Only pairs of Unix sockets can be made, because every event loop of asyncio has one; they lead nowhere else.
Python's own sockets are refused by an audit hook. What compiled libraries open is refused by the kernel: it kills the
process on the spot, for whatever a library makes of a refusal, the run must fail.
"""

import ctypes
import platform
import sys
from collections.abc import Iterator

import pytest

_attempts: list[str] = []

# By machine: what the kernel calls it, and its number for the call `socket`.
_SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_NO_NEW_PRIVILEGES, _SET_FILTER, _FILTER_MODE = 38, 22, 2
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _KILL_PROCESS = 0x7FFF0000, 0x80000000
_CALL, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16  # where each lies in what the kernel shows a filter
_AF_UNIX = 1  # of this machine alone; the C library looks up user names through one


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


@pytest.fixture(autouse=True)
def _no_swallowed_refusal() -> Iterator[None]:
    """Fail a test that asked for a socket, even if the code under test swallowed the refusal."""
    _attempts.clear()
    yield
    if _attempts:
        pytest.fail(f"sockets were asked for: {', '.join(_attempts)}")


def kernel_refuses() -> bool:
    """Have the kernel kill this process, and any it starts, if it opens a socket; say whether it will."""
    if sys.platform != "linux" or platform.machine() not in _SOCKET_CALLS:
        return False
    machine, socket_call = _SOCKET_CALLS[platform.machine()]
    steps = [
        (_LOAD_WORD, 0, 0, _MACHINE),
        (_JUMP_IF_EQUAL, 0, 4, machine),
        (_LOAD_WORD, 0, 0, _CALL),
        (_JUMP_IF_EQUAL, 0, 2, socket_call),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_IF_EQUAL, 0, 1, _AF_UNIX),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _KILL_PROCESS),
    ]
    program = _Program(len(steps), (_Instruction * len(steps))(*(_Instruction(*step) for step in steps)))
    control = ctypes.CDLL(None).prctl
    refused = control(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or control(_SET_FILTER, _FILTER_MODE, ctypes.byref(program))
    return not refused


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event.startswith("socket.") and not (event == "socket.__new__" and arguments[1] == _AF_UNIX):
        _attempts.append(event)
        raise PermissionError(f"{event}: no test of the runtime may open a socket")


sys.addaudithook(_refuse)
kernel_refuses()
