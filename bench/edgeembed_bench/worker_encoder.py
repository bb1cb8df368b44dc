"""A subject in its own process, as an encoder that evaluations take."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_bench.worker_client import Worker


class WorkerEncoder:
    """Encodes in a subject's process.

    Args:
        worker: The process.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def encode(self, sentences: Sequence[str], /, **_: Any) -> npt.NDArray[np.float32]:
        """Give (n, dim) float32 vectors of n texts; the subject batches as it does by itself."""
        return self._worker.encode(sentences)

    def encode_query(self, sentences: Sequence[str], /, **_: Any) -> npt.NDArray[np.float32]:
        """Give (n, dim) float32 vectors of n queries."""
        return self._worker.encode(sentences, "query")

    def encode_document(self, sentences: Sequence[str], /, **_: Any) -> npt.NDArray[np.float32]:
        """Give (n, dim) float32 vectors of n documents."""
        return self._worker.encode(sentences, "document")
