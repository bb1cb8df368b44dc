import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from edgeembed_bench.processes import ProcessSubject, one_core, started
from edgeembed_runtime.errors import CheckError

_SUBJECT = """
import os, sys, time

def encode(text):
    if text == "noise":
        print("noise", flush=True)
    if text == "crash":
        print("first line", file=sys.stderr)
        raise RuntimeError("the model fell over")
    if text == "vanish":
        os._exit(3)
    if text == "sleep":
        time.sleep(60)
    return [float("nan")] if text == "nan" else [1.0, 2.0, 3.0]

def threads(text):
    return [0.0] * int(os.environ["OMP_NUM_THREADS"])
"""


@pytest.fixture
def subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProcessSubject:
    """A subject that needs the standard library alone."""
    (tmp_path / "trivial.py").write_text(_SUBJECT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return ProcessSubject("stub", "function", "trivial:encode", ("trivial",))


def test_a_start_is_split_into_stages_that_are_its_whole(subject: ProcessSubject) -> None:
    with started(subject, "a text") as worker:
        start = worker.start
    stages = (start.interpreter_ms, start.import_ms, start.load_ms, start.first_call_ms)
    assert all(stage > 0 for stage in stages)
    assert start.total_ms == sum(stages)


def test_each_text_has_a_time_of_its_own_and_what_the_subject_prints_does_no_harm(subject: ProcessSubject) -> None:
    with started(subject, "a text") as worker:
        times = worker.times_ms(["noise", "two", "thrée\n四"])
        again = worker.times_ms([])
    assert len(times) == 3
    assert all(time > 0 for time in times)
    assert again == []


def test_a_worker_tells_dimension_python_and_memory(subject: ProcessSubject) -> None:
    with started(subject, "a text") as worker:
        assert worker.facts["dimension"] == 3
        assert worker.facts["python"] == sys.version.split()[0]
        memory = worker.memory()
    if Path("/proc/self/status").exists():
        assert memory["resident_bytes"] is not None
        assert memory["peak_bytes"] is not None
        assert 1e6 < memory["resident_bytes"] <= memory["peak_bytes"]


def test_what_imports_alone_encodes_nothing() -> None:
    with started(ProcessSubject("floor", "nothing", modules=("json", "csv")), "a text") as worker:
        assert worker.facts["dimension"] is None


def test_a_worker_is_a_fresh_process_that_ends_with_the_block(subject: ProcessSubject) -> None:
    with started(subject, "a") as first, started(subject, "a") as second:
        pids = {first._process.pid, second._process.pid}
    assert len(pids | {os.getpid()}) == 3
    assert first._process.returncode is not None


def test_subjects_are_held_to_one_thread(subject: ProcessSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    threads = ProcessSubject("threads", "function", "trivial:threads")
    with started(threads, "a text") as worker:
        assert worker.facts["dimension"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("crash", "^stub ended with exit code 1: RuntimeError: the model fell over$"),
        ("vanish", "^stub ended with exit code 3: it said nothing$"),
        ("nan", "^stub ended with exit code 1: the first vector is not finite$"),
    ],
)
def test_a_subject_that_fails_is_named_with_the_last_line_it_said(
    subject: ProcessSubject, text: str, message: str
) -> None:
    with pytest.raises(CheckError, match=message), started(subject, text):
        pass


def test_a_subject_that_fails_later_is_named_too(subject: ProcessSubject) -> None:
    with pytest.raises(CheckError, match=r"^stub ended .*fell over$"), started(subject, "a text") as worker:
        worker.times_ms(["fine", "crash"])


def test_a_question_to_a_process_that_is_gone_says_why(subject: ProcessSubject) -> None:
    with started(subject, "a text") as worker:
        for texts in (["vanish"], ["a text"]):
            with pytest.raises(CheckError, match=r"^stub ended with exit code 3: it said nothing$"):
                worker.times_ms(texts)


def test_a_silent_subject_is_ended(subject: ProcessSubject) -> None:
    with pytest.raises(CheckError, match=r"^stub gave no answer"), started(subject, "sleep", timeout_s=0.5):
        pass


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"modules": ("no_such_module",)}, "ModuleNotFoundError: No module named 'no_such_module'"),
        ({"argument": "trivial:nothing"}, "AttributeError"),
        ({"python": "/no/such/python"}, "^stub cannot start: /no/such/python: No such file"),
    ],
)
def test_a_subject_that_cannot_load_says_so_in_a_line(
    subject: ProcessSubject, broken: dict[str, Any], message: str
) -> None:
    with pytest.raises(CheckError, match=message) as error, started(replace(subject, **broken), "a text"):
        pass
    assert "\n" not in str(error.value)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system keeps no process on a core")
def test_one_core_holds_this_process_and_its_children_and_is_given_back(subject: ProcessSubject) -> None:
    before = os.sched_getaffinity(0)
    with one_core() as core, started(subject, "a text") as worker:
        assert os.sched_getaffinity(0) == {core}
        assert os.sched_getaffinity(worker._process.pid) == {core}
    assert os.sched_getaffinity(0) == before
