"""A loaded subject within the worker process: its functions, properties of its model, and timing of its calls."""

from __future__ import annotations

import time
from typing import Any


class LoadedSubject:
    """A loaded subject: its encode functions and properties of its model.

    `inspected` sets all attributes except `encode`, `encode_query`, `encode_document`, `packages` and `max_tokens`.

    Attributes:
        encode: Function that encodes a text to a vector of shape (dim,), or n texts to n such vectors.
        encode_query: The same function for queries.
        encode_document: The same function for documents.
        packages: Distributions that the subject needs.
        max_tokens: Length in tokens at which texts are truncated; None if unknown.
        tokenize: Function that returns the model inputs of a text or a list of texts; None if not available.
        run: Function that returns embeddings for the result of `tokenize`; None if not available.
        count: Function that returns the number of tokens of a text before truncation; None if unknown.
        vocabulary_size: Vocabulary size; None if unknown.
        parameters: Number of all parameters and of those in embedding tables; None if unknown.
    """

    def __init__(self, encode: Any, packages: list[str], inspect: Any = None) -> None:
        self.encode = self.encode_query = self.encode_document = encode
        self.packages = packages
        self.max_tokens: Any = None
        self.tokenize: Any = None
        self.run: Any = None
        self.count: Any = None
        self.vocabulary_size: Any = None
        self.parameters: Any = None
        self._inspect = inspect

    def inspected(self) -> LoadedSubject:
        """Inspect the model, which may use memory, and return this subject; call it after memory was measured."""
        if self._inspect is not None:
            self._inspect(self)
            self._inspect = None
        return self

    def count_tokens(self, texts: list[str]) -> list[int] | None:
        """Return the number of tokens of each text before truncation; None if unknown."""
        return [self.count(text) for text in texts] if self.count else None

    def use_tokenizer(self, content: bytes) -> None:
        """Count tokens with a tokenizer of the tokenizers library.

        Args:
            content: The tokenizer.json.
        """
        tokenizer = make_tokenizer(content)
        self.count = lambda text: len(tokenizer.encode(text).ids)
        self.vocabulary_size = tokenizer.get_vocab_size()


def make_tokenizer(content: bytes) -> Any:
    """Return a tokenizer of the tokenizers library that neither pads nor truncates.

    Args:
        content: The tokenizer.json.
    """
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_buffer(content)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def time_encoding(subject: LoadedSubject, items: list[Any]) -> dict[str, Any]:
    """Return the wall time of encoding each item, and the CPU time of all of them, in nanoseconds."""
    return _time_calls(subject.encode, items)


def time_empty_calls(count: int) -> dict[str, Any]:
    """Return the times of empty calls, measured like encoding: the overhead of the measurement."""
    return _time_calls(_do_nothing, [""] * count)


def time_model(subject: LoadedSubject, items: list[Any]) -> list[int] | None:
    """Return the time of the model without tokenization for each item, in nanoseconds; None if impossible."""
    if subject.run is None:
        return None
    return [_time_ns(subject.run, subject.tokenize(item)) for item in items]


def time_parts(subject: LoadedSubject, items: list[Any]) -> dict[str, list[int]]:
    """Return the times of each part of encoding each item, in nanoseconds; the order of the parts alternates."""
    times: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        calls = _part_calls(subject, item)
        for _, call in calls:  # warms the caches equally for all parts
            call()
        for part, call in calls if number % 2 else reversed(calls):
            start = time.perf_counter_ns()
            call()
            times.setdefault(part, []).append(time.perf_counter_ns() - start)
    return times


def encode_for(subject: LoadedSubject, texts: list[str], seconds: float) -> int:
    """Encode texts one by one, in a cycle, for at least `seconds`; return the number of encoded texts."""
    import itertools

    count, end = 0, time.perf_counter() + seconds
    cycle = itertools.cycle(texts)
    while time.perf_counter() < end:
        subject.encode(next(cycle))
        count += 1
    return count


def _part_calls(subject: LoadedSubject, item: Any) -> list[Any]:
    """Return the callable parts: "encode", "tokenize", "run" (the model on token ids) and "bare" (tokenize and run)."""
    if subject.tokenize is None:
        return []
    calls = [("encode", lambda: subject.encode(item)), ("tokenize", lambda: subject.tokenize(item))]
    if subject.run is not None:
        prepared = subject.tokenize(item)
        calls.append(("run", lambda: subject.run(prepared)))
        calls.append(("bare", lambda: subject.run(subject.tokenize(item))))
    return calls


def _time_calls(call: Any, items: list[Any]) -> dict[str, Any]:
    cpu_ns = time.process_time_ns()
    times_ns = [_time_ns(call, item) for item in items]
    return {"times_ns": times_ns, "cpu_ns": time.process_time_ns() - cpu_ns}


def _time_ns(call: Any, item: Any) -> int:
    start = time.perf_counter_ns()
    call(item)
    return time.perf_counter_ns() - start


def _do_nothing(_item: Any) -> None:
    return None
