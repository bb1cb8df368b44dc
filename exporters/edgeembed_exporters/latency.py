"""How long one text takes, for a limit. The bench compares models; this looks at one."""

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from edgeembed_runtime import Encoder

_WARM_UP, _TEXTS = 20, 200


def measure_latency_ms(folder: Path, sentences: Sequence[str]) -> float:
    """Give the median time of encoding one text, on one thread, tokenizing included.

    Args:
        folder: A bundle's folder.
        sentences: Real text; the first 200 are timed, over and over where there are fewer.
    """
    encoder = Encoder.load(folder, threads=1)
    texts = [sentences[i % len(sentences)] for i in range(_TEXTS)]
    for text in texts[:_WARM_UP]:
        encoder.encode(text, on_truncate="ignore")
    return statistics.median(_time_ms(encoder, text) for text in texts)


def _time_ms(encoder: Encoder, text: str) -> float:
    start = time.perf_counter()
    encoder.encode(text, on_truncate="ignore")
    return (time.perf_counter() - start) * 1000
