"""Subjects in fresh processes of their own, all of them on one core, with one thread each."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from edgeembed_runtime.errors import CheckError

TIMEOUT_S = 120.0  # for any one answer: torch on a slow disk takes half a minute to start
_WORKER = Path(__file__).with_name("worker.py")
_ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"),
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "PYTHONUTF8": "1",
}


@dataclass(frozen=True)
class ProcessSubject:
    """One encoder, and the process that it is to be measured in.

    Attributes:
        name: What the report calls it.
        adapter: How `worker.py` loads it: "bundle", "sentence-transformer", "model2vec", "onnx", "function", or
            "nothing", which encodes nothing.
        argument: What the adapter loads: a folder, or `module:function`.
        modules: What counts as its import: these are imported before it is loaded.
        note: What a reader should know of it.
        python: The interpreter of the environment that it lives in.
    """

    name: str
    adapter: str
    argument: str = ""
    modules: tuple[str, ...] = ()
    note: str = ""
    python: str = sys.executable


@dataclass(frozen=True)
class Start:
    """From nothing to the first vector.

    Attributes:
        interpreter_ms: From the request for a process to Python running in it.
        import_ms: Importing the subject's modules.
        load_ms: Loading the model, and what the package imports only then.
        first_call_ms: The first text.
        resident_bytes: Resident memory then; None where the system does not tell.
        peak_bytes: The most resident memory until then, likewise.
    """

    interpreter_ms: float
    import_ms: float
    load_ms: float
    first_call_ms: float
    resident_bytes: int | None
    peak_bytes: int | None

    @property
    def total_ms(self) -> float:
        """Process start to first vector."""
        return self.interpreter_ms + self.import_ms + self.load_ms + self.first_call_ms


class Worker:
    """A subject's process, ready to encode; made by `started`.

    Attributes:
        start: What starting it took.
        facts: The vector's dimension, the version of Python and those of the subject's packages.
    """

    def __init__(
        self, name: str, process: "subprocess.Popen[str]", errors: IO[str], *, begun_ns: int, timeout_s: float
    ) -> None:
        self._name = name
        self._process = process
        self._questions = cast("IO[str]", process.stdin)
        self._answers = cast("IO[str]", process.stdout)
        self._errors = errors
        self._timeout_s = timeout_s
        answer = self._answer()
        clock = [begun_ns, *(answer.pop(f"{stage}_ns") for stage in ("begun", "imported", "loaded", "first"))]
        interpreter, imports, load, first = ((after - before) / 1e6 for before, after in itertools.pairwise(clock))
        memory = answer.pop("resident_bytes"), answer.pop("peak_bytes")
        self.start = Start(interpreter, imports, load, first, *memory)
        self.facts: dict[str, Any] = answer

    def times_ms(self, texts: Sequence[str]) -> list[float]:
        """Encode each text; give the milliseconds of each, as the worker's own clock has them."""
        times: list[int] = self._ask({"time": list(texts)})["times_ns"]
        return [nanoseconds / 1e6 for nanoseconds in times]

    def parts_us(self, texts: Sequence[str]) -> dict[str, list[float]]:
        """Give the microseconds of encoding each text, and of the parts of that done bare."""
        parts: dict[str, list[int]] = self._ask({"parts": list(texts)})["parts_ns"]
        return {name: [nanoseconds / 1e3 for nanoseconds in times] for name, times in parts.items()}

    def memory(self) -> dict[str, int | None]:
        """Give `resident_bytes` and `peak_bytes` of now."""
        found: dict[str, int | None] = self._ask({"memory": None})
        return found

    def _ask(self, question: dict[str, Any]) -> Any:
        with contextlib.suppress(BrokenPipeError):  # the missing answer tells more
            self._questions.write(json.dumps(question) + "\n")
            self._questions.flush()
        return self._answer()

    def _answer(self) -> Any:
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(self._timeout_s, end)
        timer.start()
        try:
            line = self._answers.readline()
        finally:
            timer.cancel()
        if not line.endswith("\n"):
            raise CheckError(self._why_silent(late=late.is_set()))
        return json.loads(line)

    def _why_silent(self, *, late: bool) -> str:
        if late:
            return (
                f"{self._name} gave no answer for {self._timeout_s:g} s and was ended; run it alone to see what it does"
            )
        code = self._process.wait()
        self._errors.seek(0)
        said = [line.strip() for line in self._errors if line.strip()]
        return f"{self._name} ended with exit code {code}: {said[-1] if said else 'it said nothing'}"


@contextlib.contextmanager
def started(subject: ProcessSubject, text: str, timeout_s: float = TIMEOUT_S) -> Iterator[Worker]:
    """Start a subject's process and let it encode a first text; end it with the `with` block.

    Args:
        subject: What to start.
        text: The first text.
        timeout_s: How long any one answer may take.

    Raises:
        CheckError: If the process ends or is silent for too long, then or later; it names the subject and gives the
            last line of what it said.
    """
    arguments = [",".join(subject.modules), subject.adapter, subject.argument, text]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        begun_ns = time.monotonic_ns()
        try:
            process = subprocess.Popen(  # noqa: S603 - the bench starts what it was told to measure
                [subject.python, str(_WORKER), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                env={**os.environ, **_ONE_THREAD},
            )
        except OSError as error:
            raise CheckError(f"{subject.name} cannot start: {subject.python}: {error.strerror}") from error
        with process:
            try:
                yield Worker(subject.name, process, errors, begun_ns=begun_ns, timeout_s=timeout_s)
            finally:
                process.kill()  # it holds nothing that could be lost
                with contextlib.suppress(BrokenPipeError):  # a question that it did not live to read
                    cast("IO[str]", process.stdin).close()


@contextlib.contextmanager
def one_core() -> Iterator[int | None]:
    """Keep this process, and those that it starts, on one core for the length of a `with` block.

    Yields:
        The core: the last of those allowed, for the first serves most of the system's interrupts. None where the system
        cannot keep a process on a core.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield None
        return
    before = os.sched_getaffinity(0)
    core = max(before)
    os.sched_setaffinity(0, {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, before)
