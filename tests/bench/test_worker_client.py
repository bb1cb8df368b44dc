import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_bench.runner import pin_to_cores
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import start_worker
from edgeembed_runtime.errors import CheckError, InputError


@pytest.fixture
def subject(stub: Callable[..., Subject]) -> Subject:
    """A subject that needs the standard library alone."""
    return stub()


def test_stages_of_a_start_add_up_to_its_total(subject: Subject) -> None:
    with start_worker(subject, "a text") as worker:
        start = worker.start
    stages = (start.interpreter_ms, start.import_ms, start.load_ms, start.first_call_ms)
    assert all(stage > 0 for stage in stages)
    assert start.total_ms == sum(stages)


def test_each_text_is_timed_and_printed_output_of_the_subject_is_ignored(subject: Subject) -> None:
    with start_worker(subject, "a text") as worker:
        times = worker.times_ms(["noise", "two", "thrée\n四"])
        again = worker.times_ms([])
    assert len(times) == 3
    assert all(time > 0 for time in times)
    assert again == []


def test_cpu_time_covers_the_work(stub: Callable[..., Subject]) -> None:
    with start_worker(stub(function="slow"), "a text") as worker:
        times, cpu_s = worker.times_and_cpu(["one", "two"])
    assert all(time >= 2 for time in times)
    assert cpu_s > 0  # its share of the wall time depends on other processes


def test_list_of_texts_is_one_item(stub: Callable[..., Subject]) -> None:
    with start_worker(stub(function="batch_size"), "a text") as worker:
        assert worker.encode(["one", "two", "three"]).tolist() == [[3.0]] * 3
        assert len(worker.times_ms([["one", "two", "three"], "one"])) == 2


def test_embeddings_are_returned_unchanged(subject: Subject) -> None:
    texts = ["x" * length for length in range(1, 600)]
    with start_worker(subject, "a text") as worker:
        vectors = worker.encode(texts)
        none = worker.encode([])
    assert vectors.dtype == np.float32
    assert vectors[:, 0].tolist() == list(range(1, 600))
    assert none.shape == (0, 3)


def test_encode_for_runs_for_the_given_time(stub: Callable[..., Subject]) -> None:
    with start_worker(stub(function="slow"), "a text") as worker:
        assert 1 <= worker.encode_for(0.02, ["one", "two"]) <= 10


def test_subject_whose_parts_cannot_be_called_has_none(subject: Subject) -> None:
    with start_worker(subject, "a text") as worker:
        assert worker.parts_ms(["one"]) == {}
        assert worker.model_times_ms(["one"]) is None
        assert worker.count_tokens(["one"]) is None
        assert worker.info()["parameters"] is None


def test_empty_calls_are_timed(subject: Subject) -> None:
    with start_worker(subject, "a text") as worker:
        times = worker.timer_ms(100)
    assert len(times) == 100
    assert 0 < float(np.median(times)) < 1


def test_worker_reports_dimension_python_and_memory(subject: Subject) -> None:
    with start_worker(subject, "a text") as worker:
        assert worker.dimension == 3
        assert worker.info()["python"] == sys.version.split()[0]
        memory = worker.memory()
    if Path("/proc/self/status").exists():
        assert memory["resident_bytes"] is not None
        assert memory["peak_bytes"] is not None
        assert 1e6 < memory["resident_bytes"] <= memory["peak_bytes"]


def test_subject_that_only_imports_has_no_dimension() -> None:
    with start_worker(Subject("floor", "nothing", modules=("json", "csv")), "a text") as worker:
        assert worker.dimension is None


def test_worker_is_a_fresh_process_that_ends_with_the_block(subject: Subject) -> None:
    with start_worker(subject, "a") as first, start_worker(subject, "a") as second:
        pids = {first._process.pid, second._process.pid}
    assert len(pids | {os.getpid()}) == 3
    assert first._process.returncode is not None


@pytest.mark.parametrize("threads", [1, 2])
def test_number_of_threads_is_enforced(
    stub: Callable[..., Subject], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    with start_worker(stub(function="threads"), "a text", threads=threads) as worker:
        assert worker.dimension == threads


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("crash", "^stub ended with exit code 1: RuntimeError: the model fell over$"),
        ("vanish", "^stub ended with exit code 3: it printed no error$"),
        ("nan", "^stub ended with exit code 1: the first embedding is not finite$"),
    ],
)
def test_failing_subject_is_named_with_its_last_line(subject: Subject, text: str, message: str) -> None:
    with pytest.raises(CheckError, match=message), start_worker(subject, text):
        pass


def test_subject_that_fails_later_is_named(subject: Subject) -> None:
    with pytest.raises(CheckError, match=r"^stub ended .*fell over$"), start_worker(subject, "a text") as worker:
        worker.times_ms(["fine", "crash"])


def test_request_to_an_ended_process_reports_why_it_ended(subject: Subject) -> None:
    with start_worker(subject, "a text") as worker:
        for texts in (["vanish"], ["a text"]):
            with pytest.raises(CheckError, match=r"^stub ended with exit code 3: it printed no error$"):
                worker.times_ms(texts)


def test_subject_that_does_not_answer_is_ended(subject: Subject) -> None:
    with pytest.raises(CheckError, match=r"^stub did not answer"), start_worker(subject, "sleep", timeout_s=0.5):
        pass


def test_time_limit_is_for_each_text_of_a_request(stub: Callable[..., Subject]) -> None:
    # Each text takes 0.25 s, and all of a request take longer than the limit.
    with start_worker(stub(function="steady"), "a", timeout_s=2) as worker:
        assert len(worker.times_ms(["one"] * 10)) == 10
        assert len(worker.times_ms([["one", "two", "three", "four", "five"]] * 2)) == 2
        assert worker.encode(["one"] * 10).shape == (10, 3)


def test_subject_that_hangs_at_a_later_text_is_ended(subject: Subject) -> None:
    with (
        pytest.raises(CheckError, match=r"^stub did not answer within 6 s and was ended"),
        start_worker(subject, "a", timeout_s=2) as worker,
    ):
        worker.times_ms(["one", "sleep", "two"])


def test_process_that_never_reads_a_long_text_is_ended(subject: Subject, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    program.chmod(0o755)
    with (
        pytest.raises(CheckError, match=r"^stub did not answer within 0\.5 s"),
        start_worker(replace(subject, python=str(program)), "long " * 100_000, timeout_s=0.5),
    ):
        pass


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"modules": ("no_such_module",)}, r"No module named 'no_such_module'; install it in that Python, or name"),
        ({"python": "/bin/ls"}, r"^stub (answered|ended)"),
        ({"argument": "trivial:nothing"}, "AttributeError"),
        ({"python": "/no/such/python"}, "^stub cannot start: /no/such/python: No such file"),
    ],
)
def test_subject_that_cannot_load_is_an_error_of_one_line(
    subject: Subject, broken: dict[str, Any], message: str
) -> None:
    with pytest.raises(CheckError, match=message) as error, start_worker(replace(subject, **broken), "a text"):
        pass
    assert "\n" not in str(error.value)


def test_pinning_yields_none_where_the_system_does_not_support_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("psutil.Process.cpu_affinity")
    with pin_to_cores(10_000) as cores:
        assert cores is None


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system keeps no process on a core")
def test_pinning_covers_child_processes_and_is_undone(subject: Subject) -> None:
    before = os.sched_getaffinity(0)
    with pin_to_cores() as cores, start_worker(subject, "a text") as worker:
        assert cores is not None
        assert len(cores) == 1
        assert os.sched_getaffinity(0) == set(cores)
        assert os.sched_getaffinity(worker._process.pid) == set(cores)
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system keeps no process on a core")
def test_more_threads_than_cores_are_an_input_error() -> None:
    allowed = len(os.sched_getaffinity(0))
    with (
        pytest.raises(InputError, match=f"^{allowed + 1} threads requested; expected at most {allowed}, "),
        pin_to_cores(allowed + 1),
    ):
        pass


def test_program_that_is_not_python_is_an_error(subject: Subject, tmp_path: Path) -> None:
    for said in ("hello", "{}", "[]"):
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\necho '{said}'\n", encoding="utf-8")
        program.chmod(0o755)
        with pytest.raises(CheckError, match=r"^stub answered .*expected a Python interpreter after the @$"):  # noqa: SIM117
            with start_worker(replace(subject, python=str(program)), "a text"):
                pass


def test_text_may_contain_any_character(subject: Subject) -> None:
    text = "a\x00b \\n \u00e9\U0001f600"
    with start_worker(subject, text) as worker:
        assert worker.encode([text])[0, 0] == len(text)


@pytest.mark.parametrize("text", ["文" * 22_000, "a" * 200_000, "\ud800" * 30_000, "", "\n", " \r\u2028\\x41 "])
def test_first_text_may_have_any_length(stub: Callable[..., Subject], text: str) -> None:
    with start_worker(stub(function="as_long"), text) as worker:
        assert worker.dimension == 1 + len(text)


def test_all_lines_of_an_exception_are_reported(stub: Callable[..., Subject]) -> None:
    with (
        pytest.raises(CheckError, match=r"^stub ended with exit code 1: ValueError: first line second line$"),
        start_worker(stub(function="two_lines"), "a text"),
    ):
        pass


@pytest.mark.parametrize("function", ["words", "one_number"])
def test_invalid_vector_is_an_error(stub: Callable[..., Subject], function: str) -> None:
    with pytest.raises(CheckError, match=r"expected (one|a) vector"), start_worker(stub(function=function), "a text"):
        pass


_ISOLATED = """
import importlib.util, sys

def embed(texts):
    foreign = {"numpy", "scipy", "psutil", "edgeembed_runtime"} & sys.modules.keys()
    visible = [name for name in ("adapters", "installed_packages", "loaded_subject") if importlib.util.find_spec(name)]
    return [[float(len(foreign)), float(len(visible)), float(sys.flags.no_site)] for _ in texts]
"""


@pytest.mark.parametrize("safe_path", [None, "1"])
def test_worker_imports_no_packages_and_hides_its_own_modules_from_the_subject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, safe_path: str | None
) -> None:
    (tmp_path / "isolated.py").write_text(_ISOLATED, encoding="utf-8")
    # A Python without site-packages has neither edgeembed_bench nor its dependencies.
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    if safe_path:
        monkeypatch.setenv("PYTHONSAFEPATH", safe_path)
    with start_worker(Subject("a", "function", "isolated:embed", str(python)), "a text") as worker:
        assert worker.encode(["a text"]).tolist() == [[0.0, 0.0, 1.0]]
        assert len(worker.times_ms(["a text"])) == 1
        assert worker.info()["installed_bytes"] is None
