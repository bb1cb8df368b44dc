"""Progress on stderr, where nobody watches a terminal."""

import time

import pytest

from edgeembed.cli.progress import Pace, TerminalReporter


def test_a_line_states_progress_rate_and_remaining_time() -> None:
    pace = Pace("teacher", 10_000)
    pace.advance(4_000, 100.0)  # found in the cache, so no measure of speed
    pace.advance(5_000, 160.0)
    assert pace.line(160.0, 90.0) == "teacher: 5,000 of 10,000 (50 %), 16.7/s, 5 min left"


def test_a_step_without_a_total_states_its_running_time() -> None:
    assert Pace("initialize", None).line(170.0, 100.0) == "initialize: running for 1 min"


def test_an_unknown_rate_is_omitted() -> None:
    pace = Pace("teacher", 100)
    pace.advance(40, 5.0)
    assert pace.line(5.0, 0.0) == "teacher: 40 of 100 (40 %)"


def test_a_long_step_prints_lines_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    lines = ""
    with TerminalReporter(interval_s=0.02).step("stage 1", 8, "steps") as advance:
        advance(0)
        advance(3)
        for _ in range(500):
            lines += capfd.readouterr().err
            if "3 of 8 steps (38 %)" in lines:
                break
            time.sleep(0.02)
    assert "stage 1: 3 of 8 steps (38 %)" in lines
    assert "stage 1: 3 of 8 steps in" in capfd.readouterr().err


@pytest.mark.parametrize(("done", "expected"), [(0, "train: 8 in"), (5, "train: 5 of 8 in"), (8, "train: 8 in")])
def test_a_step_that_ends_early_states_how_much_was_done(
    done: int, expected: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with TerminalReporter().step("train", 8) as advance:
        advance(0)
        advance(done)
    assert capfd.readouterr().err.startswith(expected)


def test_a_resumed_step_states_what_an_earlier_run_had_done(capfd: pytest.CaptureFixture[str]) -> None:
    with TerminalReporter().step("stage 1", 302, "steps") as advance:
        advance(60)
        advance(302)
    assert capfd.readouterr().err.startswith("stage 1: 302 steps, 60 of them by an earlier run, in ")


def test_a_short_step_prints_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with TerminalReporter().step("vocabulary"):
        pass
    assert len(capfd.readouterr().err.splitlines()) == 1
