"""The plugin under which CI runs the runtime's suite fails every test that opens a socket."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.slow

_ASKING = """
import contextlib
import socket

def test_asking():
    with contextlib.suppress(OSError):
        socket.socket()
    with contextlib.suppress(OSError):
        socket.getaddrinfo("localhost", 80)
"""
_RUNNING = """
import asyncio
import contextlib
import socket

def test_running():
    asyncio.run(asyncio.sleep(0))

def test_connecting():
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as made:
        made.connect("/absent")
"""
_NATIVE = "import ctypes\nctypes.CDLL(None).socket({family}, 1, 0)\n"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)


def test_a_test_that_swallows_the_refusal_of_a_socket_fails(tmp_path: Path) -> None:
    (tmp_path / "test_asking.py").write_text(_ASKING, encoding="utf-8")
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no_sockets", tmp_path)
    assert done.returncode == 1
    assert "sockets were asked for: socket.__new__, socket.getaddrinfo" in done.stdout


def test_an_event_loop_can_run_but_not_connect(tmp_path: Path) -> None:
    (tmp_path / "test_running.py").write_text(_RUNNING, encoding="utf-8")
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no_sockets", tmp_path)
    assert "sockets were asked for: socket.connect" in done.stdout
    assert "2 passed, 1 error" in done.stdout


def test_a_library_or_a_child_that_opens_a_socket_is_killed() -> None:
    if run("-c", "import no_sockets, sys\nsys.exit(not no_sockets.kernel_refuses())").returncode:
        pytest.skip("this kernel takes no filter of system calls")
    outwards, inwards = _NATIVE.format(family=2), _NATIVE.format(family=1)
    assert run("-c", "import no_sockets\n" + outwards).returncode == -signal.SIGSYS
    child = f"import no_sockets, subprocess, sys\nsys.exit(-subprocess.call([sys.executable, '-c', {outwards!r}]))"
    assert run("-c", child).returncode == signal.SIGSYS
    assert run("-c", "import no_sockets\n" + inwards).returncode == 0
