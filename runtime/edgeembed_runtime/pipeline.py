"""Tokenizer and model, one after the other, for one text or for many."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._progress import counted
from edgeembed_runtime._threads import run_in_threads
from edgeembed_runtime.backends import Backend, load_backend
from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.errors import BundleError, InputError
from edgeembed_runtime.tokenizer import TextInfo, Tokenizer

# Texts a step of work: fewer are done before another thread has started, with more the counter stands still.
_FEWEST, _MOST = 8, 64
_STEPS_A_THREAD = 4
# Threads that share an onnxruntime session wait for each other's memory: with short texts two do less than one, with
# long ones little more. So each has a model of its own, which these many texts pay for.
_WORTH_A_MODEL = 32
_MOST_SQUARED = 1.02


class Pipeline:
    """What turns a text into its vector. Threads may share one.

    Args:
        bundle: Where tokenizer and model come from.
        trusted: Whether to load them without comparing their checksums, and to take vectors as they come.

    Raises:
        BundleError: If one cannot be loaded.
        VerificationError: If one is not the one that was exported.
    """

    def __init__(self, bundle: Bundle, *, trusted: bool = False) -> None:
        self._bundle = bundle
        where = str(bundle.path / "tokenizer.json")
        self._tokenizer = Tokenizer(bundle.read("tokenizer.json", trusted=trusted), bundle.max_seq_length, where)
        self._backend = load_backend(bundle, trusted=trusted)
        # Threads take from and give to this one: to load models again each time would let memory grow.
        self._idle = deque([self._backend])
        self._is_trusted = trusted

    def run(
        self, texts: Sequence[str], *, threads: int, refuse_long: bool, show_progress: bool
    ) -> tuple[npt.NDArray[np.float32], int]:
        """Give the vectors of texts, each run by itself, the longest first.

        Args:
            texts: The texts, prompts included.
            threads: How many are worked on at once.
            refuse_long: Whether a text of too many tokens is an error.
            show_progress: Whether to count on stderr.

        Returns:
            (texts, dimension) float32, and how many texts' ends were not read.

        Raises:
            InputError: If a text is no valid Unicode, or too long and `refuse_long` is set.
            BundleError: If the model cannot run, or gives a vector that is not finite.
        """
        vectors = np.empty((len(texts), self._bundle.dimension), dtype=np.float32)
        truncated = bytearray(len(texts))
        if self._bundle.backend == "onnx":
            threads = min(threads, max(1, len(texts) // _WORTH_A_MODEL))

        def encode(positions: Sequence[int]) -> int:
            with self._one_backend(shared=threads == 1) as backend:
                for i in positions:
                    vectors[i], truncated[i] = self.run_one(texts[i], i, refuse_long=refuse_long, backend=backend)
            return len(positions)

        done = run_in_threads(encode, _steps(texts, threads), threads)
        for _ in counted(done, len(texts), "texts") if show_progress else done:
            pass
        return vectors, sum(truncated)

    def run_one(
        self, text: str, position: int = 0, *, refuse_long: bool, backend: Backend | None = None
    ) -> tuple[npt.NDArray[np.float32], bool]:
        """Give the vector of one text, with as little around tokenizer and model as can be.

        Args:
            text: The text, its prompt included.
            position: Its place among others, for messages.
            refuse_long: As for `run`.
            backend: The engine to use in place of the pipeline's own.

        Returns:
            (dimension,) float32, and whether the end of the text was not read.

        Raises:
            InputError: As for `run`.
            BundleError: Likewise.
        """
        try:
            token_ids, truncated = self._tokenizer.tokenize(text)
        except InputError as error:
            raise type(error)(f"text {position} {error}") from error
        if truncated and refuse_long:
            raise InputError(
                f"text {position} is too long, expected at most {self._bundle.max_seq_length} tokens; "
                "split it, or pass on_truncate='ignore'"
            )
        try:
            vector = (backend or self._backend).embed(token_ids)
        except MemoryError as error:
            raise BundleError(f"{self._bundle.path} needs more memory for text {position} than there is") from error
        # The square of the length: 1, or 0 for a text of no known token. NaN is not below anything. Of the ways to find
        # what is not finite, this takes the least time after a model has emptied the processor's caches.
        if not self._is_trusted and not vector.dot(vector) <= _MOST_SQUARED:
            raise BundleError(
                f"{self._bundle.path} gives no finite vector of unit length for text {position}; export it again"
            )
        return vector, truncated

    @contextmanager
    def _one_backend(self, *, shared: bool) -> Iterator[Backend]:
        """Lend the backend that all threads share, or one that nobody else uses meanwhile.

        Where no further one can be loaded, for example because the bundle's folder is gone, the shared one is lent:
        that is slower, and gives the same vectors.

        Raises:
            VerificationError: If a further one had to be loaded, and the model is not the exported one anymore.
        """
        if shared or self._bundle.backend != "onnx":
            yield self._backend
            return
        backend = self._own_backend()
        if backend is None:
            yield self._backend
            return
        try:
            yield backend
        finally:
            self._idle.append(backend)

    def _own_backend(self) -> Backend | None:
        """Return a backend that nobody else uses, a new one if need be; None where none can be loaded."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return load_backend(self._bundle, trusted=self._is_trusted)
        except BundleError:
            return None

    def describe(self, text: str) -> TextInfo:
        """Say what becomes of a text, its prompt included."""
        return self._tokenizer.describe(text)


def _steps(texts: Sequence[str], threads: int) -> list[Sequence[int]]:
    """Give the texts' positions in steps of work, long texts first, so that no thread is left with one at the end."""
    size = max(_FEWEST, min(_MOST, len(texts) // (_STEPS_A_THREAD * threads)))
    positions: Sequence[int] = range(len(texts))
    if len(texts) > size:
        positions = sorted(positions, key=lambda i: len(texts[i]), reverse=True)
    return [positions[i : i + size] for i in range(0, len(positions), size)]
