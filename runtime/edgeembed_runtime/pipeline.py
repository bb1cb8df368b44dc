"""Prepend prompts to texts, tokenize them, and run the model, one text at a time, on one or several threads."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edgeembed_runtime.backends import Backend, load_backend
from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.encode_options import TextPolicy
from edgeembed_runtime.errors import BundleError, InputError
from edgeembed_runtime.tokenization.tokenizer import TextInfo, Tokenizer, Tokens, load_tokenizer

if TYPE_CHECKING:
    import numpy.typing as npt

    from edgeembed_runtime.coverage import VocabularyCoverage, WordTokens

# Texts per chunk. Smaller chunks are done before another thread has started; larger ones make the counter stand still.
_MIN_CHUNK, _MAX_CHUNK = 8, 64
_CHUNKS_PER_THREAD = 4
# Threads that share an onnxruntime session wait for each other's memory: two threads are slower than one with short
# texts, and hardly faster with long ones. So each thread loads its own model, if it has at least this many texts.
_MIN_TEXTS_PER_MODEL = 32
_MAX_SQUARED_NORM = 1.02
_COUNTER_DELAY_S = 2.0
_COUNTER_INTERVAL_S = 0.2


Text = str | tuple[str, str]
"""A text, or a pair of texts for a classifier of pairs."""


class Output(NamedTuple):
    """The output of a model for a text.

    Attributes:
        values: (size,) float32: the embedding, or a classifier's logits.
        truncated: Whether the end of the text was not read.
        unknown: Whether the vocabulary knows almost none of its words.
    """

    values: npt.NDArray[np.float32]
    truncated: bool
    unknown: bool


class Outputs(NamedTuple):
    """The outputs of a model for many texts, (texts, size), and the flags of `Output` as (texts,) arrays."""

    values: npt.NDArray[np.float32]
    truncated: npt.NDArray[np.bool_]
    unknown: npt.NDArray[np.bool_]

    def counts(self) -> tuple[int, int]:
        """Return how many texts were truncated, and how many are unknown."""
        return int(self.truncated.sum()), int(self.unknown.sum())


class Pipeline:
    """The tokenizer and the model of a bundle. Threads may share a pipeline.

    The output of a text is its embedding, (dimension,), or a classifier's logits, (labels,).

    Args:
        bundle: The bundle to load.
        trusted: Whether to skip the checksums of tokenizer and model, and the check that outputs are finite.

    Attributes:
        tokenizer: The tokenizer.

    Raises:
        BundleError: If the tokenizer or the model cannot be loaded.
        VerificationError: If one of them does not match its checksum.
    """

    def __init__(self, bundle: Bundle, *, trusted: bool = False) -> None:
        self._bundle = bundle
        # One after the other: a second thread only waits for the interpreter's lock. The tokenizer comes first, since
        # the session then takes memory that parsing the vocabulary has freed.
        self.tokenizer = _load_tokenizer(bundle, trusted=trusted)
        self._backend = load_backend(bundle, trusted=trusted)
        # Threads borrow backends from this pool; loading models anew for each call would let memory grow.
        self._idle_backends = deque([self._backend])
        self._prompt_words: tuple[str, WordTokens] | None = None
        self._is_trusted = trusted
        self._size = len(bundle.labels) if bundle.is_classifier else bundle.dimension
        self._is_valid = _is_finite if bundle.is_classifier else _is_normalized

    @cached_property
    def _coverage(self) -> VocabularyCoverage:
        from edgeembed_runtime.coverage import VocabularyCoverage  # most texts have known words only

        return VocabularyCoverage(self.tokenizer.vocabulary, self.tokenizer.unknown_id)

    def run(
        self, texts: Sequence[Text], policy: TextPolicy, *, prompt: str = "", threads: int | None, show_progress: bool
    ) -> Outputs:
        """Return the outputs of texts, each one run alone, the longest first.

        Args:
            texts: The texts, or pairs of texts.
            policy: What to do with texts that are too long or unknown. Warnings are the caller's task.
            prompt: The prompt to put before each text. There is none for pairs.
            threads: The number of threads; None means all cores that the process may use.
            show_progress: Whether to show a counter on stderr.

        Returns:
            The outputs, in the order of the texts.

        Raises:
            InputError: If a text is not valid Unicode, or has a problem that is an error by the policy.
            BundleError: If the model cannot run, or returns an output that is not finite.
        """
        from edgeembed_runtime.concurrency import available_cores, run_in_threads  # one text does without them

        outputs = Outputs(
            np.empty((len(texts), self._size), dtype=np.float32),
            np.zeros(len(texts), dtype=np.bool_),
            np.zeros(len(texts), dtype=np.bool_),
        )
        threads = threads or available_cores()
        if self._bundle.backend == "onnx":
            threads = min(threads, max(1, len(texts) // _MIN_TEXTS_PER_MODEL))

        def run_chunk(positions: Sequence[int]) -> int:
            with self._one_backend(shared=threads == 1) as backend:
                for i in positions:
                    output = self.run_one(texts[i], policy, i, prompt=prompt, backend=backend)
                    outputs.values[i], outputs.truncated[i], outputs.unknown[i] = output
            return len(positions)

        done = run_in_threads(run_chunk, _chunks(texts, threads), threads)
        for _ in with_counter(done, len(texts), "texts") if show_progress else done:
            pass
        return outputs

    def run_one(
        self, text: Text, policy: TextPolicy, position: int = 0, *, prompt: str = "", backend: Backend | None = None
    ) -> Output:
        """Return the output of one text, with as little overhead as possible.

        Args:
            text: The text, or a pair of texts.
            policy: As for `run`.
            position: The text's position in the list of texts, for messages.
            prompt: As for `run`.
            backend: The backend to use instead of the pipeline's own.

        Returns:
            The output.

        Raises:
            InputError: As for `run`.
            BundleError: As for `run`.
        """
        try:
            tokens = self.tokenizer.tokenize(prompt + text if prompt and isinstance(text, str) else text)
        except InputError as error:
            raise type(error)(f"text {position} {error}") from error
        truncated = tokens.truncated
        # Tokens of ASCII text other than the unknown token are words.
        is_ascii = text.isascii() if isinstance(text, str) else text[0].isascii() and text[1].isascii()
        unknown = (tokens.unknown > 0 or not is_ascii) and self._word_tokens(tokens, prompt).are_unknown
        if truncated or unknown:
            policy.check(position, truncated=truncated, unknown=unknown, max_seq_length=self._bundle.max_seq_length)
        try:
            output = (backend or self._backend).run(tokens.ids)
        except MemoryError as error:
            raise BundleError(f"{self._bundle.path} needs more memory for text {position} than is available") from error
        if not self._is_trusted and not self._is_valid(output):
            problem = "logits for text {} that are not finite"
            if not self._bundle.is_classifier:
                problem = "an embedding for text {} that is not finite or not normalized"
            raise BundleError(f"{self._bundle.path} returns {problem.format(position)}; export it again")
        return Output(output, truncated, unknown)

    def _word_tokens(self, tokens: Tokens, prompt: str) -> WordTokens:
        """Return how many tokens of a text stand for words, without its prompt's, and special ones of each text."""
        counted = self._prompt_words  # read once: threads with other prompts replace it
        if counted is None or counted[0] != prompt:
            without_text = self.tokenizer.tokenize(("", "") if self._bundle.is_pairs else prompt)
            counted = self._prompt_words = prompt, self._coverage.count(without_text.ids)
        return self._coverage.count(tokens.ids).without(counted[1])

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

    def describe(self, text: str, prompt: str = "") -> TextInfo:
        """Return the tokenization results of a text with its prompt; `known_share` is that of the text alone."""
        words = self._word_tokens(self.tokenizer.tokenize(prompt + text), prompt)
        return self.tokenizer.describe(prompt + text)._replace(known_share=words.known_share)


def _load_tokenizer(bundle: Bundle, *, trusted: bool) -> Tokenizer:
    content = bundle.read("tokenizer.json", trusted=trusted)
    where = str(bundle.folder / "tokenizer.json")
    return load_tokenizer(content, bundle.max_seq_length, where, is_pairs=bundle.is_pairs)


def _is_normalized(vector: npt.NDArray[np.float32]) -> bool:
    # The squared norm is 1, or 0 for a text without a known token; a comparison with NaN is False. This is the fastest
    # check when a large model has just replaced the content of the processor's caches.
    return bool(vector.dot(vector) <= _MAX_SQUARED_NORM)


def _is_finite(logits: npt.NDArray[np.float32]) -> bool:
    return bool(np.isfinite(logits).all())


def _length(text: Text) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _chunks(texts: Sequence[Text], threads: int) -> list[Sequence[int]]:
    """Return the texts' positions in chunks, long texts first, so that no thread ends up with a long one at the end."""
    size = max(_MIN_CHUNK, min(_MAX_CHUNK, len(texts) // (_CHUNKS_PER_THREAD * threads)))
    positions: Sequence[int] = range(len(texts))
    if len(texts) > size:
        positions = sorted(positions, key=lambda i: _length(texts[i]), reverse=True)
    return [positions[i : i + size] for i in range(0, len(positions), size)]


def with_counter(steps: Iterable[int], total: int, noun: str) -> Iterator[int]:
    """Yield each step; after two seconds, show a counter on stderr if stderr is a terminal.

    Args:
        steps: For each step, the number of items that it finished.
        total: The number of all items.
        noun: The plural noun for the items, such as "texts".
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield from steps
        return
    due = time.monotonic() + _COUNTER_DELAY_S
    shown, done = False, 0
    for step in steps:
        done += step
        if time.monotonic() >= due:
            sys.stderr.write(f"\r{done:,} of {total:,} {noun}")
            sys.stderr.flush()
            shown, due = True, time.monotonic() + _COUNTER_INTERVAL_S
        yield step
    if shown:
        sys.stderr.write(f"\r{total:,} of {total:,} {noun}\n")
