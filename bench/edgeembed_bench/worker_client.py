"""Client of the worker process: start a subject in a fresh process, send requests, read answers."""

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
from edgeembed_runtime.errors import CheckError
from edgeembed_runtime.model_trust import needs_trust

from edgeembed_bench.subjects import Subject

Item = str | list[str]

TIMEOUT_S = 120.0  # of the start, and of each text; torch on a slow disk takes half a minute to start
_TEXTS_PER_REQUEST = 64  # of `encode`
_PART_CALLS = 8  # "parts" runs four parts of each text twice
_WORKER = Path(__file__).parent / "worker" / "__main__.py"
_IMPORTING = {"sentence-transformer", "sentence-transformer-onnx"}  # these may import classes named in the model folder
_TRACEBACK = "Traceback (most recent call last):"
_MAX_MESSAGE = 300
# The runtime disables telemetry unless the variable is set. All subjects, including the floor, get the same setting,
# because importing onnxruntime with telemetry uses some megabytes more.
_TELEMETRY = {"ORT_DISABLE_TELEMETRY": "1"}
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class Start:
    """Cold start of a process, from the call that starts it to the first embedding.

    Attributes:
        interpreter_ms: Time to start the Python interpreter.
        import_ms: Time to import the subject's modules.
        load_ms: Time to load the model, including modules imported on loading.
        first_call_ms: Time to encode the first text.
        resident_bytes: Resident memory after the first text; None where the system does not report it.
        peak_bytes: Peak resident memory until the end of the first text; None where the system does not report it.
    """

    interpreter_ms: float
    import_ms: float
    load_ms: float
    first_call_ms: float
    resident_bytes: int | None
    peak_bytes: int | None

    @property
    def total_ms(self) -> float:
        """Time from process start to the first embedding, in milliseconds."""
        return self.interpreter_ms + self.import_ms + self.load_ms + self.first_call_ms


class Worker:
    """Client of a subject's worker process, ready to encode; created by `start_worker`.

    Attributes:
        start: The cold start.
        dimension: Embedding dimension; None for a subject that encodes nothing.
    """

    def __init__(
        self,
        name: str,
        process: "subprocess.Popen[str]",
        errors: IO[str],
        text: str,
        *,
        begun_ns: int,
        timeout_s: float,
    ) -> None:
        self._name = name
        self._process = process
        self._requests = cast("IO[str]", process.stdin)
        self._answers = cast("IO[str]", process.stdout)
        self._errors = errors
        self._timeout_s = timeout_s
        # One line of ASCII, which the process reads without importing json.
        answer = self._exchange(text.encode("unicode_escape").decode("ascii"), timeout_s)
        try:
            clock = [begun_ns, *(answer.pop(f"{stage}_ns") for stage in ("begun", "imported", "loaded", "first"))]
            memory = answer.pop("resident_bytes"), answer.pop("peak_bytes")
            self.dimension: int | None = answer["dimension"]
        except (AttributeError, KeyError, TypeError) as error:
            raise self._unexpected(str(answer)) from error
        interpreter, imports, load, first = ((after - before) / 1e6 for before, after in itertools.pairwise(clock))
        self.start = Start(interpreter, imports, load, first, *memory)

    def times_ms(self, items: Sequence[Item]) -> list[float]:
        """Return the time of encoding each item (a text or a list of texts) in milliseconds, measured by the worker."""
        return self.times_and_cpu(items)[0]

    def times_and_cpu(self, items: Sequence[Item]) -> tuple[list[float], float]:
        """Return the time of encoding each item in milliseconds, and the CPU time of all of them in seconds.

        Args:
            items: Texts, or lists of texts.

        Returns:
            One wall time per item, and the CPU time summed over threads.
        """
        answer = self._request({"time": list(items)}, _count_texts(items))
        return _milliseconds(answer["times_ns"]), answer["cpu_ns"] / 1e9

    def parts_ms(self, items: Sequence[Item]) -> dict[str, list[float]]:
        """Return the times of the parts of encoding each item, in milliseconds.

        Args:
            items: Texts, or lists of texts.

        Returns:
            The times by part: "encode", the whole call; "tokenize"; "run", the model on token ids; "bare", tokenization
            and model without the encoder around them. Empty if the parts cannot be called separately.
        """
        parts: dict[str, list[int]] = self._request({"parts": list(items)}, _PART_CALLS * _count_texts(items))[
            "parts_ns"
        ]
        return {part: _milliseconds(times) for part, times in parts.items()}

    def model_times_ms(self, items: Sequence[Item]) -> list[float] | None:
        """Return the time of each item without tokenization, in milliseconds; None if it cannot be separated."""
        times: list[int] | None = self._request({"run": list(items)}, _count_texts(items))["times_ns"]
        return None if times is None else _milliseconds(times)

    def timer_ms(self, calls: int) -> list[float]:
        """Return the measured times of empty calls in milliseconds, the overhead of the measurement."""
        return _milliseconds(self._request({"timer": calls})["times_ns"])

    def encode_for(self, seconds: float, texts: Sequence[str]) -> int:
        """Encode texts one by one, in a cycle, for at least `seconds`; return the number of encoded texts."""
        request = {"encode_for": {"seconds": seconds, "texts": list(texts)}}
        inferences: int = self._request(request, extra_s=seconds)["inferences"]
        return inferences

    def count_tokens(self, texts: Sequence[str]) -> list[int] | None:
        """Return the number of tokens of each text before truncation; None if it is unknown."""
        tokens: list[int] | None = self._request({"count_tokens": list(texts)}, len(texts))["tokens"]
        return tokens

    def encode(self, texts: Sequence[str], role: str = "") -> npt.NDArray[np.float32]:
        """Return the embeddings of texts.

        Args:
            texts: The texts.
            role: "query" or "document" for subjects that encode them differently, else "".

        Returns:
            (n, dim) float32.
        """
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "vectors.f32")
            parts = []
            for begin in range(0, len(texts), _TEXTS_PER_REQUEST):
                chunk = list(texts[begin : begin + _TEXTS_PER_REQUEST])
                request = {"encode": {"texts": chunk, "role": role, "out": str(out)}}
                shape = self._request(request, len(chunk))["shape"]
                parts.append(np.fromfile(out, dtype=np.float32).reshape(shape))
        return np.concatenate(parts) if parts else np.empty((0, self.dimension or 0), np.float32)

    def info(self) -> dict[str, Any]:
        """Return the fields of `ModelInfo` by name, except for the dimension."""
        info: dict[str, Any] = self._request({"info": None})
        return info

    def memory(self) -> dict[str, int | None]:
        """Return the current `resident_bytes` and `peak_bytes`."""
        memory: dict[str, int | None] = self._request({"memory": None})
        return memory

    def _request(self, request: dict[str, Any], texts: int = 1, *, extra_s: float = 0.0) -> Any:
        """Send a request and return its answer.

        Args:
            request: The request, see `edgeembed_bench.worker.__main__`.
            texts: Number of texts that it encodes. The time limit grows with it, so that no subject is ended because a
                request has many texts.
            extra_s: Time in seconds that the request takes by itself.
        """
        return self._exchange(json.dumps(request), self._timeout_s * max(texts, 1) + extra_s)

    def _exchange(self, line: str, limit_s: float) -> Any:
        """Send one line and return the answer; end the process if both together take longer than the limit."""
        timed_out = threading.Event()

        def end() -> None:
            timed_out.set()
            self._process.kill()

        timer = threading.Timer(limit_s, end)
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError):  # the process ended; why is reported below
                self._requests.write(line + "\n")
                self._requests.flush()
            answer = self._answers.readline()
        finally:
            timer.cancel()
        if not answer.endswith("\n"):
            raise CheckError(self._failure(limit_s if timed_out.is_set() else None))
        try:
            return json.loads(answer)
        except ValueError as error:
            raise self._unexpected(answer) from error

    def _unexpected(self, line: str) -> CheckError:
        return CheckError(f"{self._name} answered {line.strip()[:40]!r}; expected a Python interpreter after the @")

    def _failure(self, limit_s: float | None) -> str:
        """Return why there is no answer: a limit that was exceeded, or how the process ended by itself."""
        if limit_s is not None:
            return f"{self._name} did not answer within {limit_s:g} s and was ended; run it alone to find out why"
        code = self._process.wait()
        self._errors.seek(0)
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{self._name} {how}: {_last_message(self._errors.read())}"


class WorkerEncoder:
    """An encoder with the methods of sentence-transformers that encodes in a worker process.

    Args:
        worker: The process.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def encode(self, sentences: Sequence[str], /, **_: Any) -> npt.NDArray[np.float32]:
        """Return the (n, dim) float32 embeddings of n texts; the subject chooses its own batch size."""
        return self._worker.encode(sentences)

    def encode_query(self, sentences: Sequence[str], /, **_: Any) -> npt.NDArray[np.float32]:
        """Return the (n, dim) float32 embeddings of n queries."""
        return self._worker.encode(sentences, "query")

    def encode_document(self, sentences: Sequence[str], /, **_: Any) -> npt.NDArray[np.float32]:
        """Return the (n, dim) float32 embeddings of n documents."""
        return self._worker.encode(sentences, "document")


@contextlib.contextmanager
def start_worker(subject: Subject, text: str, *, threads: int = 1, timeout_s: float = TIMEOUT_S) -> Iterator[Worker]:
    """Start a process of a subject that encodes a first text; end it with the `with` block.

    Args:
        subject: The subject.
        text: The first text.
        threads: Threads that it may use.
        timeout_s: Time limit of the start, and of each text of a request, in seconds.

    Yields:
        The process, ready to encode.

    Raises:
        InputError: If the subject is a sentence-transformers folder that would run code of its own.
        CheckError: If the process ends or does not answer in time, now or later; the message has the subject's name and
            the last line that it printed.
    """
    trust = "trusted" if subject.adapter in _IMPORTING and needs_trust(subject.argument) else ""
    arguments = [",".join(subject.imports), subject.adapter, subject.argument, str(threads), trust]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        begun_ns = time.monotonic_ns()
        try:
            process = subprocess.Popen(  # noqa: S603 - running the subject is what a benchmark is for
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
                yield Worker(subject.name, process, errors, text, begun_ns=begun_ns, timeout_s=timeout_s)
            finally:
                process.kill()  # it holds no data that could be lost
                with contextlib.suppress(BrokenPipeError):  # an unread request
                    cast("IO[str]", process.stdin).close()


def _environment(threads: int) -> dict[str, str]:
    return {
        **dict.fromkeys(_THREADS, str(threads)),
        # By default tokenizers uses all cores for a batch, whatever the thread limit of torch.
        "TOKENIZERS_PARALLELISM": "false" if threads == 1 else "true",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUTF8": "1",
    }


def _count_texts(items: Sequence[Item]) -> int:
    return sum(1 if isinstance(item, str) else len(item) for item in items)


def _milliseconds(times_ns: list[int]) -> list[float]:
    return [nanoseconds / 1e6 for nanoseconds in times_ns]


def _last_message(errors: str) -> str:
    """Return the exception of the last traceback, or else the last line."""
    lines = [line for line in errors.rpartition(_TRACEBACK)[2].splitlines() if line.strip()]
    if _TRACEBACK in errors:
        lines = [" ".join(line for line in lines if not line.startswith(" "))]
    if not lines:
        return "it printed no error"
    message = re.sub(r"^(\w+\.)+(?=\w+(:|$))", "", lines[-1].strip())[:_MAX_MESSAGE]
    if message.startswith("ModuleNotFoundError"):
        message += "; install it in that Python, or name another one after the @"
    return message
