"""The documents of the service: an index that is saved regularly and when the service stops."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from edgeembed_runtime import Document, Encoder, Hit, Index, InputError

from .schemas import DocumentBody, SearchRequest

logger = logging.getLogger(__name__)


class DocumentStore:
    """An index whose changes run one at a time, in threads, while searches go on.

    Args:
        folder: The folder of the saved index. If it does not exist, the index is empty.
        encoder: The encoder of the index.
        save_interval_s: How often changes are saved, in seconds. A crash loses what was changed since.

    Raises:
        InputError: If the folder is not an index, is damaged, or was built by another encoder.
    """

    def __init__(self, folder: Path, encoder: Encoder, *, save_interval_s: float = 30) -> None:
        self._folder = folder
        self._index = Index.open(folder, encoder) if folder.exists() else Index.build(encoder, [])
        self._save_interval_s = save_interval_s
        self._change = asyncio.Lock()
        self._is_saved = True
        self._is_stopping = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["DocumentStore"]:
        """Save regularly during the block, and once more after it."""
        saver = asyncio.create_task(self._save_regularly())
        try:
            yield self
        finally:
            self._is_stopping.set()
            await saver

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._index)

    def get(self, document_id: str) -> Document | None:
        """Return a document, or None if there is none with this id."""
        return self._index.get(document_id)

    async def put(self, documents: Sequence[DocumentBody]) -> tuple[int, int]:
        """Add documents, or replace those with the same ids.

        Returns:
            How many were added, and how many replaced.

        Raises:
            InputError: If an id is there twice; nothing is changed then.
        """
        if len({document.id for document in documents}) < len(documents):
            raise InputError("an id is there twice, expected a different id for each document; leave one out")
        async with self._change:
            old = [document for document in documents if document.id in self._index]
            new = [document for document in documents if document.id not in self._index]
            self._is_saved = False
            if old:
                await asyncio.to_thread(self._update, old)
            if new:
                await asyncio.to_thread(self._add, new)
        return len(new), len(old)

    async def remove(self, document_id: str) -> None:
        """Remove a document.

        Raises:
            InputError: If there is no document with this id.
        """
        async with self._change:
            await asyncio.to_thread(self._index.remove, [document_id])
            self._is_saved = False

    async def search(self, request: SearchRequest, vector: npt.NDArray[np.float32] | None = None) -> list[Hit]:
        """Return the documents that match a request best.

        Args:
            request: The request.
            vector: The embedding of its query, if it is known already.

        Raises:
            InputError: If the filter is invalid.
            MissingExtraError: If the method needs bm25s, which is not installed.
        """
        query: Any = request.query if vector is None else vector
        options: dict[str, Any] = {"min_score": request.min_score, "method": request.method}

        def search() -> list[Hit]:
            hits: list[Hit] = self._index.search(query, request.top_k, filter=request.filter, **options)
            return hits

        return await asyncio.to_thread(search)

    async def save(self) -> None:
        """Save the index if it was changed."""
        async with self._change:
            if not self._is_saved:
                await asyncio.to_thread(self._index.save, self._folder, force=True)
                self._is_saved = True

    async def _save_regularly(self) -> None:
        while not self._is_stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_stopping.wait(), self._save_interval_s)
            try:
                await self.save()
            except InputError:  # a full disk, for example: the next attempt may succeed
                logger.exception("the index was not saved")

    def _add(self, documents: list[DocumentBody]) -> None:
        ids = [document.id for document in documents]
        metadata = [document.metadata for document in documents]
        self._index.add([document.text for document in documents], ids=ids, metadata=metadata)

    def _update(self, documents: list[DocumentBody]) -> None:
        ids = [document.id for document in documents]
        metadata = [document.metadata for document in documents]
        self._index.update(ids, [document.text for document in documents], metadata=metadata)
