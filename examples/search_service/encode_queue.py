"""A bounded queue of texts, which one worker encodes in batches."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from edgeembed_runtime import Encoder

Kind = Literal["query", "document"]
Vectors = npt.NDArray[np.float32]


class QueueFullError(Exception):
    """Raised when too many texts wait already."""


@dataclass(frozen=True)
class _Job:
    texts: list[str]
    kind: Kind
    result: "asyncio.Future[Vectors]"


class EncodeQueue:
    """Encode the texts of concurrent requests in one worker thread.

    The worker takes all texts that wait when it becomes free, so under load a batch is large and with a single client
    it is one request; nothing waits for a batch to fill. A full queue refuses texts instead of letting latency and
    memory grow.

    Args:
        encoder: The encoder.
        max_waiting: The maximum number of texts that wait.
        max_batch: The maximum number of texts per call of the encoder, unless one request has more.
    """

    def __init__(self, encoder: Encoder, *, max_waiting: int = 1024, max_batch: int = 256) -> None:
        self._encoder = encoder
        self._max_waiting = max_waiting
        self._max_batch = max_batch
        self._jobs: deque[_Job] = deque()
        self._has_jobs = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["EncodeQueue"]:
        """Encode during the block; requests that wait at its end are cancelled."""
        worker = asyncio.create_task(self._work())
        try:
            yield self
        finally:
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker
            for job in self._jobs:
                job.result.cancel()

    @property
    def waiting(self) -> int:
        """The number of texts that wait."""
        return sum(len(job.texts) for job in self._jobs)

    @property
    def is_full(self) -> bool:
        """Whether the queue refuses every text."""
        return self.waiting >= self._max_waiting

    async def encode(self, texts: list[str], kind: Kind) -> Vectors:
        """Return the embeddings of texts, (texts, dimension) float32.

        Raises:
            QueueFullError: If the queue has no room for the texts.
            EdgeEmbedError: If the encoder refuses a text of the batch.
        """
        if self.waiting + len(texts) > self._max_waiting:
            raise QueueFullError(f"{self.waiting} texts are waiting, expected at most {self._max_waiting}; try again")
        job = _Job(texts, kind, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._has_jobs.set()
        return await job.result

    async def _work(self) -> None:
        while True:
            await self._has_jobs.wait()
            jobs = self._take_batch()
            texts = [text for job in jobs for text in job.texts]
            if texts:
                try:
                    vectors = await asyncio.to_thread(self._run, texts, jobs[0].kind)
                except Exception as error:  # noqa: BLE001 - the requests raise it
                    for job in jobs:
                        _finish(job, error)
                else:
                    bounds = np.cumsum([len(job.texts) for job in jobs])[:-1]
                    for job, part in zip(jobs, np.split(vectors, bounds), strict=True):
                        _finish(job, part)

    def _take_batch(self) -> list[_Job]:
        """Remove the first jobs of one kind from the queue, and those whose request ended."""
        jobs: list[_Job] = []
        size = 0
        while self._jobs:
            job = self._jobs[0]
            if jobs and (job.kind != jobs[0].kind or size + len(job.texts) > self._max_batch):
                break
            self._jobs.popleft()
            if not job.result.done():
                jobs.append(job)
                size += len(job.texts)
        if not self._jobs:
            self._has_jobs.clear()
        return jobs

    def _run(self, texts: list[str], kind: Kind) -> Vectors:
        encode: Any = self._encoder.encode_query if kind == "query" else self._encoder.encode_document
        vectors: Vectors = encode(texts, on_truncate="ignore", on_unknown="ignore")
        return vectors


def _finish(job: _Job, result: Vectors | Exception) -> None:
    if job.result.done():  # its request was cancelled
        return
    if isinstance(result, Exception):
        job.result.set_exception(result)
    else:
        job.result.set_result(result)
