"""Tokenize texts and run the model on them, one text at a time, on one or several threads."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._progress import with_counter
from edgeembed_runtime._threads import run_in_threads
from edgeembed_runtime.backends import Backend, load_backend
from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.errors import BundleError, InputError
from edgeembed_runtime.tokenizer import TextInfo, Tokenizer

# Texts per chunk. Smaller chunks are done before another thread has started; larger ones make the counter stand still.
_MIN_CHUNK, _MAX_CHUNK = 8, 64
_CHUNKS_PER_THREAD = 4
# Threads that share an onnxruntime session wait for each other's memory: two threads are slower than one with short
# texts, and hardly faster with long ones. So each thread loads its own model, if it has at least this many texts.
_MIN_TEXTS_PER_MODEL = 32
_MAX_SQUARED_NORM = 1.02


class Pipeline:
    """The tokenizer and the model of a bundle. Threads may share a pipeline.

    Args:
        bundle: The bundle to load.
        trusted: Whether to skip the checksums of tokenizer and model, and the check that embeddings are finite.

    Raises:
        BundleError: If the tokenizer or the model cannot be loaded.
        VerificationError: If one of them does not match its checksum.
    """

    def __init__(self, bundle: Bundle, *, trusted: bool = False) -> None:
        self._bundle = bundle
        where = str(bundle.path / "tokenizer.json")
        self._tokenizer = Tokenizer(bundle.read("tokenizer.json", trusted=trusted), bundle.max_seq_length, where)
        self._backend = load_backend(bundle, trusted=trusted)
        # Threads borrow backends from this pool; loading models anew for each call would let memory grow.
        self._idle_backends = deque([self._backend])
        self._is_trusted = trusted

    def run(
        self, texts: Sequence[str], *, threads: int, error_if_long: bool, show_progress: bool
    ) -> tuple[npt.NDArray[np.float32], int]:
        """Return the embeddings of texts, each one run alone, the longest first.

        Args:
            texts: The texts, prompts included.
            threads: The number of threads.
            error_if_long: Whether a text with too many tokens is an error.
            show_progress: Whether to show a counter on stderr.

        Returns:
            (texts, dimension) float32, and the number of truncated texts.

        Raises:
            InputError: If a text is not valid Unicode, or is too long and `error_if_long` is set.
            BundleError: If the model cannot run, or returns an embedding that is not finite.
        """
        vectors = np.empty((len(texts), self._bundle.dimension), dtype=np.float32)
        truncated = bytearray(len(texts))
        if self._bundle.backend == "onnx":
            threads = min(threads, max(1, len(texts) // _MIN_TEXTS_PER_MODEL))

        def encode(positions: Sequence[int]) -> int:
            with self._one_backend(shared=threads == 1) as backend:
                for i in positions:
                    vectors[i], truncated[i] = self.run_one(texts[i], i, error_if_long=error_if_long, backend=backend)
            return len(positions)

        done = run_in_threads(encode, _chunks(texts, threads), threads)
        for _ in with_counter(done, len(texts), "texts") if show_progress else done:
            pass
        return vectors, sum(truncated)

    def run_one(
        self, text: str, position: int = 0, *, error_if_long: bool, backend: Backend | None = None
    ) -> tuple[npt.NDArray[np.float32], bool]:
        """Return the embedding of one text, with as little overhead as possible.

        Args:
            text: The text, its prompt included.
            position: Its position in the list of texts, for messages.
            error_if_long: As for `run`.
            backend: The backend to use instead of the pipeline's own.

        Returns:
            (dimension,) float32, and whether the text was truncated.

        Raises:
            InputError: As for `run`.
            BundleError: As for `run`.
        """
        try:
            token_ids, truncated = self._tokenizer.tokenize(text)
        except InputError as error:
            raise type(error)(f"text {position} {error}") from error
        if truncated and error_if_long:
            raise InputError(
                f"text {position} is too long, expected at most {self._bundle.max_seq_length} tokens; "
                "split it, or pass on_truncate='ignore'"
            )
        try:
            vector = (backend or self._backend).embed(token_ids)
        except MemoryError as error:
            raise BundleError(f"{self._bundle.path} needs more memory for text {position} than is available") from error
        # The squared norm is 1, or 0 for a text without a known token; a comparison with NaN is False. This is the
        # fastest check when a large model has just replaced the content of the processor's caches.
        if not self._is_trusted and not vector.dot(vector) <= _MAX_SQUARED_NORM:
            raise BundleError(
                f"{self._bundle.path} returns an embedding for text {position} that is not finite or not normalized; "
                "export it again"
            )
        return vector, truncated

    @contextmanager
    def _one_backend(self, *, shared: bool) -> Iterator[Backend]:
        """Yield the backend that all threads share, or one that no other thread uses at the same time.

        If no further backend can be loaded, for example because the bundle's folder was removed, yield the shared one,
        which is slower but returns the same embeddings.

        Raises:
            VerificationError: If a backend had to be loaded, and the model no longer matches its checksum.
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
            self._idle_backends.append(backend)

    def _own_backend(self) -> Backend | None:
        """Return a backend that no other thread uses, a new one if necessary; None if none can be loaded."""
        try:
            return self._idle_backends.pop()
        except IndexError:
            pass
        try:
            return load_backend(self._bundle, trusted=self._is_trusted)
        except BundleError:
            return None

    def describe(self, text: str) -> TextInfo:
        """Return the tokenization results of a text, including its prompt."""
        return self._tokenizer.describe(text)


def _chunks(texts: Sequence[str], threads: int) -> list[Sequence[int]]:
    """Return the texts' positions in chunks, long texts first, so that no thread ends up with a long one at the end."""
    size = max(_MIN_CHUNK, min(_MAX_CHUNK, len(texts) // (_CHUNKS_PER_THREAD * threads)))
    positions: Sequence[int] = range(len(texts))
    if len(texts) > size:
        positions = sorted(positions, key=lambda i: len(texts[i]), reverse=True)
    return [positions[i : i + size] for i in range(0, len(positions), size)]
