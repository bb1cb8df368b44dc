"""Resident memory of processes: they grow with what they hold."""

import sys

import pytest

from experiments.wheel.resident_memory import resident_mb

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


def test_a_process_that_holds_fifty_megabytes_is_larger_by_them() -> None:
    empty = resident_mb("pass")

    held = resident_mb("data = bytes(range(256)) * 200_000")

    assert held - empty == pytest.approx(51.2, abs=2)
