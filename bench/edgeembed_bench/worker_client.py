"""Subjects in fresh processes of their own, held to the same cores and to as many threads."""

import contextlib
import itertools
import json
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import CheckError, InputError
from edgeembed_runtime.model_trust import needs_trust

from edgeembed_bench.subjects import Subject

Item = str | list[str]

TIMEOUT_S = 120.0  # for any one answer: torch on a slow disk takes half a minute to start
_TEXTS_A_QUESTION = 256  # to encode, so that an answer stays far from that limit
_WORKER = Path(__file__).with_name("worker.py")
_IMPORTING = {"sentence-transformer", "sentence-transformer-onnx"}  # what may import the classes a folder names
_TRACEBACK = "Traceback (most recent call last):"
_MOST_SAID = 300
# The runtime sets this for itself, unless it is set already. So do all subjects, the floor included: with telemetry on,
# importing onnxruntime alone takes some megabytes more.
_TELEMETRY = {"ORT_DISABLE_TELEMETRY": "1"}
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


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
        dimension: Numbers a vector; None for what encodes nothing.
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
        try:
            clock = [begun_ns, *(answer.pop(f"{stage}_ns") for stage in ("begun", "imported", "loaded", "first"))]
            memory = answer.pop("resident_bytes"), answer.pop("peak_bytes")
            self.dimension: int | None = answer["dimension"]
        except (AttributeError, KeyError, TypeError) as error:
            raise self._strange(str(answer)) from error
        interpreter, imports, load, first = ((after - before) / 1e6 for before, after in itertools.pairwise(clock))
        self.start = Start(interpreter, imports, load, first, *memory)

    def times_ms(self, items: Sequence[Item]) -> list[float]:
        """Encode each item, a text or a list of texts; give the milliseconds of each by the worker's own clock."""
        return self.timed(items)[0]

    def timed(self, items: Sequence[Item]) -> tuple[list[float], float]:
        """Do as `times_ms`, and give the processor seconds of all of it besides, all threads together."""
        found = self._ask({"time": list(items)})
        return _milliseconds(found["times_ns"]), found["cpu_ns"] / 1e9

    def parts_ms(self, items: Sequence[Item]) -> dict[str, list[float]]:
        """Give the milliseconds of encoding each item, and of its parts done bare; nothing if the subject hides them.

        The parts are "tokenize", "run", and both in one: "bare".
        """
        parts: dict[str, list[int]] = self._ask({"parts": list(items)})["parts_ns"]
        return {name: _milliseconds(times) for name, times in parts.items()}

    def run_times_ms(self, items: Sequence[Item]) -> list[float] | None:
        """Give the milliseconds of encoding each item once it is tokenized; None if the subject hides that part."""
        times: list[int] | None = self._ask({"run": list(items)})["times_ns"]
        return None if times is None else _milliseconds(times)

    def overhead_ms(self, calls: int) -> list[float]:
        """Give the milliseconds that timing takes by itself: calls of nothing, timed as texts are."""
        return _milliseconds(self._ask({"nothing": calls})["times_ns"])

    def work(self, seconds: float, texts: Sequence[str]) -> int:
        """Encode texts one by one, over and over, for at least that long; give how many were encoded."""
        inferences: int = self._ask({"work": {"seconds": seconds, "texts": list(texts)}}, seconds)["inferences"]
        return inferences

    def tokens(self, texts: Sequence[str]) -> list[int] | None:
        """Give the number of tokens of each text, uncut; None if the subject does not tell."""
        tokens: list[int] | None = self._ask({"tokens": list(texts)})["tokens"]
        return tokens

    def encode(self, texts: Sequence[str], kind: str = "") -> npt.NDArray[np.float32]:
        """Encode texts.

        Args:
            texts: What to encode.
            kind: "query" or "document" where the subject treats them apart, else "".

        Returns:
            (n, dim) float32.
        """
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "vectors.f32")
            parts = []
            for begin in range(0, len(texts), _TEXTS_A_QUESTION):
                asked = list(texts[begin : begin + _TEXTS_A_QUESTION])
                shape = self._ask({"encode": {"texts": asked, "as": kind, "out": str(out)}})["shape"]
                parts.append(np.fromfile(out, dtype=np.float32).reshape(shape))
        return np.concatenate(parts) if parts else np.empty((0, self.dimension or 0), np.float32)

    def facts(self) -> dict[str, Any]:
        """Give what the subject is made of, by the names of `ModelInfo`, the dimension left out."""
        found: dict[str, Any] = self._ask({"facts": None})
        return found

    def memory(self) -> dict[str, int | None]:
        """Give `resident_bytes` and `peak_bytes` of now."""
        found: dict[str, int | None] = self._ask({"memory": None})
        return found

    def _ask(self, question: dict[str, Any], more_s: float = 0.0) -> Any:
        with contextlib.suppress(BrokenPipeError):  # the missing answer tells more
            self._questions.write(json.dumps(question) + "\n")
            self._questions.flush()
        return self._answer(more_s)

    def _answer(self, more_s: float = 0.0) -> Any:
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(self._timeout_s + more_s, end)
        timer.start()
        try:
            line = self._answers.readline()
        finally:
            timer.cancel()
        if not line.endswith("\n"):
            raise CheckError(self._why_silent(late=late.is_set()))
        try:
            return json.loads(line)
        except ValueError as error:
            raise self._strange(line) from error

    def _strange(self, line: str) -> CheckError:
        return CheckError(f"{self._name} answered {line.strip()[:40]!r}; expected a Python interpreter after the @")

    def _why_silent(self, *, late: bool) -> str:
        if late:
            return (
                f"{self._name} gave no answer for {self._timeout_s:g} s and was ended; run it alone to see what it does"
            )
        code = self._process.wait()
        self._errors.seek(0)
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{self._name} {how}: {_what_it_said(self._errors.read())}"


@contextlib.contextmanager
def started(subject: Subject, text: str, *, threads: int = 1, timeout_s: float = TIMEOUT_S) -> Iterator[Worker]:
    """Start a subject's process and let it encode a first text; end it with the `with` block.

    Args:
        subject: What to start.
        text: The first text.
        threads: Threads that it may use.
        timeout_s: How long any one answer may take.

    Raises:
        InputError: If the subject is a sentence-transformers folder that would run code of its own.
        CheckError: If the process ends or is silent for too long, then or later; it names the subject and gives the
            last line of what it said.
    """
    escaped = text.encode("unicode_escape").decode("ascii")  # an argument may hold no NUL
    trust = "trusted" if subject.adapter in _IMPORTING and needs_trust(subject.argument) else ""
    arguments = [",".join(subject.imports), subject.adapter, subject.argument, str(threads), escaped, trust]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        begun_ns = time.monotonic_ns()
        try:
            process = subprocess.Popen(  # noqa: S603 - the bench starts what it was told to measure
                [subject.python, str(_WORKER), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                env={**_TELEMETRY, **os.environ, **_environment(threads)},
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
def pinned_to_cores(count: int = 1) -> Iterator[tuple[int, ...]]:
    """Keep this process, and those that it starts, on some cores for the length of a `with` block.

    Args:
        count: How many cores.

    Yields:
        The cores: the last of those allowed, for the first serves most of the system's interrupts. None at all where
        the system cannot keep a process on a core.

    Raises:
        InputError: If fewer are allowed.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield ()
        return
    before = os.sched_getaffinity(0)
    if len(before) < count:
        raise InputError(f"{count} threads asked for; this process may use {len(before)} cores: ask for no more")
    cores = tuple(sorted(before)[-count:])
    os.sched_setaffinity(0, cores)
    try:
        yield cores
    finally:
        os.sched_setaffinity(0, before)


def _environment(threads: int) -> dict[str, str]:
    return {
        **dict.fromkeys(_THREADS, str(threads)),
        # tokenizers spreads a batch over all cores unless told otherwise, whatever torch is held to.
        "TOKENIZERS_PARALLELISM": "false" if threads == 1 else "true",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUTF8": "1",
    }


def _milliseconds(times_ns: list[int]) -> list[float]:
    return [nanoseconds / 1e6 for nanoseconds in times_ns]


def _what_it_said(errors: str) -> str:
    """Give the exception of the last traceback, or else the last line."""
    lines = [line for line in errors.rpartition(_TRACEBACK)[2].splitlines() if line.strip()]
    if _TRACEBACK in errors:
        lines = [" ".join(line for line in lines if not line.startswith(" "))]
    said = re.sub(r"^(\w+\.)+(?=\w+(:|$))", "", lines[-1].strip())[:_MOST_SAID] if lines else "it said nothing"
    if said.startswith("ModuleNotFoundError"):
        said += "; install it in that Python, or name another one after the @"
    return said
