"""The options that ONNX Runtime is held to, measured."""

import sys

import pytest

from experiments.runtime.session_options import CHOICES, Options, measure_memory, measure_speed


def test_one_option_at_a_time_differs_from_the_runtimes() -> None:
    first, *others = CHOICES
    assert first == Options()
    for other in others:
        differing = [name for name, value in vars(other).items() if value != getattr(first, name)]
        assert len(differing) == 2
        assert differing[0] == "name"


def test_a_session_is_timed() -> None:
    speed = measure_speed(Options())
    assert speed.load_ms > 0
    assert speed.call_ms > 0


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_memory_is_read_after_each_text() -> None:
    assert [size > 1 for size in measure_memory(Options(), texts=3)] == [True] * 3
