"""A search service: documents with metadata, semantic search, and embeddings, over HTTP.

uvicorn --factory examples.search_service.app:create_app
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from edgeembed_runtime import Document, Encoder, InputError, MissingExtraError
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from .encode_queue import EncodeQueue, QueueFullError
from .schemas import (
    MAX_BODY_BYTES,
    EncodeRequest,
    EncodeResponse,
    HitBody,
    PutRequest,
    PutResponse,
    SearchRequest,
    SearchResponse,
)
from .store import DocumentStore


@dataclass(frozen=True)
class Settings:
    """The settings of the service.

    Attributes:
        index: The folder of the saved index.
        encoder: "mini", "nano", "micro", or the path of a bundle.
        threads: The number of threads of the encoder, which it uses for batches of 64 texts or more.
        max_waiting: The maximum number of texts that wait to be encoded; more are refused with status 503.
        save_interval_s: How often changes are saved, in seconds.
    """

    index: Path = Path("search-index")
    encoder: str = "mini"
    threads: int = 1
    max_waiting: int = 1024
    save_interval_s: float = 30

    @classmethod
    def from_environment(cls) -> "Settings":
        """Return the settings in SEARCH_INDEX, SEARCH_ENCODER and SEARCH_THREADS."""
        return cls(
            index=Path(os.environ.get("SEARCH_INDEX", cls.index)),
            encoder=os.environ.get("SEARCH_ENCODER", cls.encoder),
            threads=int(os.environ.get("SEARCH_THREADS", cls.threads)),
        )


@dataclass(frozen=True)
class _Service:
    """What the requests share."""

    queue: EncodeQueue
    store: DocumentStore


def create_app(settings: Settings | None = None) -> FastAPI:
    """Return the app. The encoder and the index are loaded when it starts, and the index is saved when it stops.

    Args:
        settings: The settings; None reads them from the environment.
    """
    chosen = settings or Settings.from_environment()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        encoder = Encoder(chosen.encoder, threads=chosen.threads)
        store = DocumentStore(chosen.index, encoder, save_interval_s=chosen.save_interval_s)
        queue = EncodeQueue(encoder, max_waiting=chosen.max_waiting)
        async with store.running(), queue.running():
            app.state.service = _Service(queue, store)
            yield

    app = FastAPI(title="Search service", lifespan=lifespan)
    _add_errors(app)
    _add_routes(app)
    return app


def _add_routes(app: FastAPI) -> None:  # noqa: C901 - one nested function per route
    @app.get("/health")
    async def health() -> dict[str, str]:
        """Report that the process answers."""
        return {"status": "ok"}

    @app.get("/ready")
    async def ready(request: Request) -> dict[str, int]:
        """Report whether texts would be accepted now: 503 if the queue is full."""
        service = _service(request)
        if service.queue.is_full:
            raise QueueFullError("the queue is full")
        return {"documents": len(service.store), "waiting": service.queue.waiting}

    @app.post("/encode")
    async def encode(body: EncodeRequest, request: Request) -> EncodeResponse:
        """Return the embeddings of texts."""
        vectors = await _service(request).queue.encode(body.texts, body.kind)
        return EncodeResponse(embeddings=vectors.tolist())

    @app.post("/search")
    async def search(body: SearchRequest, request: Request) -> SearchResponse:
        """Return the documents that match a query."""
        service = _service(request)
        vectors = await service.queue.encode([body.query], "query") if body.method == "embedding" else [None]
        hits = await service.store.search(body, vectors[0])
        return SearchResponse(hits=[HitBody.from_hit(hit) for hit in hits])

    @app.put("/documents")
    async def put(body: PutRequest, request: Request) -> PutResponse:
        """Add documents, or replace those with the same ids."""
        added, updated = await _service(request).store.put(body.documents)
        return PutResponse(added=added, updated=updated)

    @app.get("/documents/{document_id:path}")
    async def get(document_id: str, request: Request) -> Document:
        """Return a document."""
        document = _service(request).store.get(document_id)
        if document is None:
            raise HTTPException(404, "there is no document with this id")
        return document

    @app.delete("/documents/{document_id:path}", status_code=204)
    async def delete(document_id: str, request: Request) -> None:
        """Remove a document."""
        try:
            await _service(request).store.remove(document_id)
        except InputError as error:
            raise HTTPException(404, "there is no document with this id") from error


def _add_errors(app: FastAPI) -> None:
    """Answer every error with a status and one line: {"error": "..."}."""

    @app.middleware("http")
    async def limit_body(request: Request, respond: Callable[[Request], Awaitable[Response]]) -> Response:
        if request.method in {"POST", "PUT"}:
            length = request.headers.get("content-length", "")
            if not length.isdecimal():
                return _error(411, "the header Content-Length is missing")
            if int(length) > MAX_BODY_BYTES:
                return _error(413, f"the body has {length} bytes, expected at most {MAX_BODY_BYTES}")
        return await respond(request)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return _error(422, f"{place}: {first['msg']}" if place else first["msg"])

    @app.exception_handler(InputError)
    async def bad_input(_request: Request, error: InputError) -> Response:
        return _error(400, str(error))

    @app.exception_handler(MissingExtraError)
    async def missing(_request: Request, error: MissingExtraError) -> Response:
        return _error(501, str(error))

    @app.exception_handler(QueueFullError)
    async def full(_request: Request, error: QueueFullError) -> Response:
        return _error(503, str(error), {"Retry-After": "1"})

    @app.exception_handler(StarletteHTTPException)
    async def other(_request: Request, error: StarletteHTTPException) -> Response:
        return _error(error.status_code, error.detail)


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": message}, status, headers)


def _service(request: Request) -> _Service:
    return cast("_Service", request.app.state.service)
