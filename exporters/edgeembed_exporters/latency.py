"""The time that a bundle takes for one text, and the limit on it."""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from edgeembed_runtime import Bundle, Encoder

from edgeembed_exporters.gate import GateError
from edgeembed_exporters.settings import spelled

T = TypeVar("T")

_WARM_UP_TEXTS, _TIMED_TEXTS = 20, 200


def measure_latency_ms(bundle: Bundle | Path, sentences: Sequence[str]) -> float:
    """Return the median milliseconds to encode one text on one thread, tokenization included.

    Args:
        bundle: The bundle.
        sentences: Real text; the first 200 are timed, repeated if there are fewer.
    """
    encoder = Encoder(bundle, threads=1)
    return median_latency_ms(lambda text: encoder.encode(text, on_truncate="ignore", on_unknown="ignore"), sentences)


def median_latency_ms(run: Callable[[T], Any], texts: Sequence[T]) -> float:
    """Return the median milliseconds of a call with one text.

    Args:
        run: The function to time.
        texts: Its arguments; the first 200 are timed, repeated if there are fewer.
    """
    chosen = [texts[i % len(texts)] for i in range(_TIMED_TEXTS)]
    for text in chosen[:_WARM_UP_TEXTS]:
        run(text)
    return statistics.median(_time_ms(run, text) for text in chosen)


def check_latency(latency_ms: float, max_latency_ms: float) -> None:
    """Raise GateError if a bundle is too slow."""
    if latency_ms > max_latency_ms:
        raise GateError(
            f"one text takes {latency_ms:.3f} ms, allowed are {max_latency_ms:g}; nothing was written: raise "
            f"{spelled('max_latency_ms')}, choose a lower precision, or export a smaller model"
        )


def _time_ms(run: Callable[[T], Any], text: T) -> float:
    start = time.perf_counter()
    run(text)
    return (time.perf_counter() - start) * 1000
