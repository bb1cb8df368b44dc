"""The search service answers, refuses, batches and saves as its README says."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np
import pytest
from edgeembed_runtime import Encoder, Index, InputError

from examples.search_service import schemas
from examples.search_service.app import Settings, create_app
from examples.search_service.encode_queue import EncodeQueue, QueueFullError

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    {"id": "bread", "text": "How to bake rye bread", "metadata": {"language": "en", "year": 2021}},
    {"id": "news/rates", "text": "The central bank raises interest rates", "metadata": {"language": "en"}},
    {"id": "cat", "text": "The cat is asleep.", "metadata": {"tags": ["pets"], "year": 2019}},
]
Result = TypeVar("Result")
Requests = Callable[[httpx.AsyncClient], Awaitable[Result]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "index", encoder="nano")


def serve(settings: Settings, requests: Requests[Result]) -> Result:
    """Start the app, send requests to it, and stop it."""

    async def main() -> Result:
        app = create_app(settings)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://service") as client,
        ):
            return await requests(client)

    return asyncio.run(main())


async def put(client: httpx.AsyncClient, *documents: dict[str, Any]) -> Any:
    return (await client.put("/documents", json={"documents": documents})).json()


async def found(client: httpx.AsyncClient, query: str, **options: Any) -> list[str]:
    response = await client.post("/search", json={"query": query, **options})
    assert response.status_code == 200, response.text
    return [hit["id"] for hit in response.json()["hits"]]


def test_documents_are_added_replaced_found_and_removed(settings: Settings) -> None:
    async def requests(client: httpx.AsyncClient) -> None:
        assert await put(client, *DOCUMENTS) == {"added": 3, "updated": 0}
        assert (await found(client, "recipe for a loaf"))[0] == "bread"
        assert await found(client, "recipe", filter={"language": "en", "year": {"$gte": 2020}}) == ["bread"]
        assert await found(client, "recipe", top_k=1, min_score=0.99) == []
        assert await put(client, {"id": "bread", "text": "A dog barks"}, {"id": "e", "text": "e"}) == {
            "added": 1,
            "updated": 1,
        }
        assert (await client.get("/documents/bread")).json() == {"id": "bread", "text": "A dog barks", "metadata": {}}
        assert (await client.delete("/documents/news/rates")).status_code == 204
        for send in (client.get, client.delete):
            response = await send("/documents/news/rates")
            assert (response.status_code, response.json()) == (404, {"error": "there is no document with this id"})

    serve(settings, requests)


def test_hits_carry_text_metadata_and_the_span_of_a_passage(settings: Settings) -> None:
    async def requests(client: httpx.AsyncClient) -> None:
        text = "The weather is fine today. " * 100 + "The password of the router is on its back."
        await put(client, {"id": "long", "text": text, "metadata": {"a": [1, "b", None, True, 0.5]}})
        (hit,) = (await client.post("/search", json={"query": "router password"})).json()["hits"]
        assert hit["metadata"] == {"a": [1, "b", None, True, 0.5]}
        start, end = hit["passage"]
        assert "password" in hit["text"][start:end]

    serve(settings, requests)


@pytest.mark.parametrize("method", ["bm25", "hybrid"])
def test_documents_are_found_by_words(settings: Settings, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def requests(client: httpx.AsyncClient) -> httpx.Response:
        await put(client, *DOCUMENTS)
        assert (await found(client, "rye", method=method))[0] == "bread"
        monkeypatch.setitem(sys.modules, "bm25s", None)
        await put(client, DOCUMENTS[0])
        return await client.post("/search", json={"query": "rye", "method": method})

    response = serve(settings, requests)
    assert response.status_code == 501
    assert "edgeembed-runtime[hybrid]" in response.json()["error"]


def test_embeddings_are_those_of_the_encoder(settings: Settings) -> None:
    async def requests(client: httpx.AsyncClient) -> Any:
        return (await client.post("/encode", json={"texts": ["the cat", "a dog"]})).json()["embeddings"]

    np.testing.assert_array_equal(serve(settings, requests), Encoder("nano").encode(["the cat", "a dog"]))


def test_texts_without_known_words_are_answered_without_a_warning(settings: Settings) -> None:
    async def requests(client: httpx.AsyncClient) -> list[int]:
        await put(client, *DOCUMENTS)
        texts = ["", "世界", "word " * 1000]
        encoded = await client.post("/encode", json={"texts": texts})
        searched = await client.post("/search", json={"query": "世界"})
        return [encoded.status_code, searched.status_code]

    assert serve(settings, requests) == [200, 200]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/encode", {"texts": []}, 422, "texts: List should have at least 1 item"),
        ("/encode", {"texts": ["a"] * (schemas.MAX_TEXTS + 1)}, 422, "texts: List should have at most"),
        ("/encode", {"texts": ["ok", "a" * (schemas.MAX_CHARACTERS + 1)]}, 422, "texts.1: String should have at most"),
        ("/encode", {"texts": [1]}, 422, "texts.0: Input should be a valid string"),
        ("/encode", {"texts": ["a"], "tokens": 3}, 422, "tokens: Extra inputs"),
        ("/encode", b'{"texts": ["\\ud800"]}', 422, "texts.0: "),
        ("/encode", b"{", 422, "JSON decode error"),
        ("/encode", b"[" * 100_000, 400, "There was an error parsing the body"),
        ("/search", {"query": " \n"}, 422, "query: Value error, the text is blank"),
        ("/search", {"query": "\u200b..."}, 422, "query: Value error, the text is blank"),
        ("/search", {"query": "a", "top_k": 0}, 422, "top_k: Input should be greater than"),
        ("/search", {"query": "a", "filter": {"year": {"$near": 1}}}, 400, "$near"),
        ("/search", b'{"query": "a", "min_score": NaN}', 400, "min_score"),
    ],
)
def test_bad_requests_are_answered_in_one_line(
    settings: Settings, path: str, body: Any, status: int, message: str
) -> None:
    async def requests(client: httpx.AsyncClient) -> httpx.Response:
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await client.post(path, headers={"Content-Type": "application/json"}, **content)

    response = serve(settings, requests)
    assert response.status_code == status, response.text
    assert message in response.json()["error"]
    assert "\n" not in response.json()["error"]


@pytest.mark.parametrize("metadata", [{"a": {"b": 1}}, {"a": float("nan")}, {"a": [[1]]}])
def test_bad_documents_change_nothing(settings: Settings, metadata: dict[str, Any]) -> None:
    async def requests(client: httpx.AsyncClient) -> None:
        await put(client, *DOCUMENTS)
        changed = {"id": "bread", "text": "changed"}
        twice = await client.put("/documents", json={"documents": [changed, changed]})
        assert (twice.status_code, "twice" in twice.json()["error"]) == (400, True)
        content = json.dumps({"documents": [changed, {"id": "new", "text": "new", "metadata": metadata}]})
        bad = await client.put("/documents", content=content, headers={"Content-Type": "application/json"})
        assert bad.status_code == 422, bad.text
        assert (await client.get("/documents/bread")).json() == DOCUMENTS[0]
        assert (await client.get("/ready")).json() == {"documents": 3, "waiting": 0}

    serve(settings, requests)


def test_large_bodies_and_bodies_of_unknown_length_are_refused(settings: Settings) -> None:
    async def chunks() -> Any:
        yield b"{}"

    async def requests(client: httpx.AsyncClient) -> list[httpx.Response]:
        large = await client.post("/encode", content=bytes(schemas.MAX_BODY_BYTES + 1))
        return [large, await client.post("/encode", content=chunks()), await client.get("/nothing")]

    responses = serve(settings, requests)
    assert [response.status_code for response in responses] == [413, 411, 404]
    assert all(response.json()["error"] for response in responses)


def test_health_and_readiness(settings: Settings) -> None:
    async def requests(client: httpx.AsyncClient) -> list[Any]:
        return [(await client.get(path)).json() for path in ("/health", "/ready")]

    assert serve(settings, requests) == [{"status": "ok"}, {"documents": 0, "waiting": 0}]


def test_documents_are_saved_when_the_service_stops(settings: Settings) -> None:
    serve(settings, lambda client: put(client, *DOCUMENTS))
    assert len(Index.open(settings.index, Encoder("nano"))) == 3

    async def requests(client: httpx.AsyncClient) -> list[str]:
        await client.delete("/documents/cat")
        return await found(client, "bread")

    assert serve(settings, requests) == ["bread", "news/rates"]
    assert len(Index.open(settings.index, Encoder("nano"))) == 2


def test_documents_are_saved_regularly_even_after_a_failure(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    save, saved = Index.save, []

    def fail_once(index: Index, *given: Any, **named: Any) -> None:
        saved.append(len(index))
        if len(saved) == 1:
            raise InputError("the disk is full")
        save(index, *given, **named)

    async def requests(client: httpx.AsyncClient) -> None:
        await put(client, *DOCUMENTS)
        while not settings.index.exists():
            await asyncio.sleep(0.01)

    monkeypatch.setattr(Index, "save", fail_once)
    serve(Settings(settings.index, "nano", save_interval_s=0.01), requests)
    assert saved == [3, 3]
    assert "the disk is full" in caplog.text


def test_service_does_not_start_on_a_folder_that_is_no_index(settings: Settings) -> None:
    settings.index.mkdir()
    (settings.index / "thesis.tex").touch()
    with pytest.raises(InputError, match="expected an index"):
        serve(settings, lambda client: client.get("/health"))


class _SlowEncoder:
    """Encodes when it is told to, and records its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.go = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    def encode_document(self, texts: list[str], **_: Any) -> np.ndarray[Any, Any]:
        self.batches.append(texts)
        asyncio.run_coroutine_threadsafe(self.go.wait(), self.loop).result()
        if "bad" in texts:
            raise InputError("a bad text")
        return np.array([[len(text)] for text in texts], dtype=np.float32)

    encode_query = encode_document


def queue_of(encoder: _SlowEncoder, **limits: int) -> EncodeQueue:
    return EncodeQueue(encoder, **limits)  # type: ignore[arg-type]


def test_requests_that_wait_are_encoded_together() -> None:
    async def main() -> None:
        encoder = _SlowEncoder()
        queue = queue_of(encoder, max_batch=4)
        async with queue.running():
            first = asyncio.create_task(queue.encode(["a"], "document"))
            while not encoder.batches:
                await asyncio.sleep(0)
            texts = [["bb", "ccc"], ["dddd"], ["eeeee", "f"]]
            others = [asyncio.create_task(queue.encode(each, "document")) for each in texts]
            query = asyncio.create_task(queue.encode(["gg"], "query"))
            await asyncio.sleep(0)
            assert queue.waiting == 6
            encoder.go.set()
            results = [vectors.ravel().tolist() for vectors in await asyncio.gather(first, *others, query)]
        assert results == [[1], [2, 3], [4], [5, 1], [2]]
        assert encoder.batches == [["a"], ["bb", "ccc", "dddd"], ["eeeee", "f"], ["gg"]]

    asyncio.run(main())


def test_a_full_queue_refuses_and_a_cancelled_request_is_not_encoded() -> None:
    async def main() -> None:
        encoder = _SlowEncoder()
        queue = queue_of(encoder, max_waiting=2)
        async with queue.running():
            first = asyncio.create_task(queue.encode(["a"], "document"))
            while not encoder.batches:
                await asyncio.sleep(0)
            cancelled = asyncio.create_task(queue.encode(["b"], "document"))
            second = asyncio.create_task(queue.encode(["c"], "document"))
            await asyncio.sleep(0)
            assert queue.is_full
            with pytest.raises(QueueFullError, match="2 texts are waiting, expected at most 2"):
                await queue.encode(["d"], "document")
            cancelled.cancel()
            encoder.go.set()
            await asyncio.gather(first, second)
        assert encoder.batches == [["a"], ["c"]]

    asyncio.run(main())


def test_an_error_of_the_encoder_reaches_its_requests_and_the_worker_goes_on() -> None:
    async def main() -> None:
        encoder = _SlowEncoder()
        encoder.go.set()
        queue = queue_of(encoder)
        async with queue.running():
            with pytest.raises(InputError, match="a bad text"):
                await queue.encode(["bad"], "document")
            assert (await queue.encode(["good"], "document")).tolist() == [[4]]

    asyncio.run(main())


def test_a_full_queue_is_answered_with_503(settings: Settings) -> None:
    async def requests(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [
            await client.post("/encode", json={"texts": ["a", "b"]}),
            await client.post("/encode", json={"texts": ["a"]}),
        ]

    refused, served = serve(Settings(settings.index, "nano", max_waiting=1), requests)
    assert (refused.status_code, refused.headers["retry-after"], served.status_code) == (503, "1", 200)


def test_concurrent_requests_get_their_own_results(settings: Settings) -> None:
    async def requests(client: httpx.AsyncClient) -> None:
        texts = [f"document number {number}" for number in range(40)]
        expected = Encoder("nano").encode(texts)

        async def one(number: int) -> None:
            await put(client, {"id": str(number), "text": texts[number]})
            response = await client.post("/encode", json={"texts": [texts[number]]})
            np.testing.assert_array_equal(response.json()["embeddings"][0], expected[number])
            assert (await found(client, texts[number], top_k=1)) == [str(number)]
            if number % 2:
                await client.delete(f"/documents/{number}")

        await asyncio.gather(*map(one, range(len(texts))))
        assert (await client.get("/ready")).json()["documents"] == 20

    serve(settings, requests)


@contextmanager
def process(index: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "uvicorn", "--factory", "examples.search_service.app:create_app", "--port", "0"]
    environment = {**os.environ, "SEARCH_INDEX": str(index), "SEARCH_ENCODER": "nano"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        try:
            for line in started.stderr:
                if match := re.search(r"running on (http://\S+)", line):
                    yield match[1], started
                    break
        finally:
            started.terminate()
            started.communicate(timeout=60)


@pytest.mark.slow
def test_a_process_serves_concurrent_clients_and_saves_when_it_is_terminated(tmp_path: Path) -> None:
    def one(client: httpx.Client, number: int) -> list[str]:
        document = {"id": f"d{number}", "text": f"a text about number {number}"}
        client.put("/documents", json={"documents": [document]}).raise_for_status()
        response = client.post("/search", json={"query": document["text"], "top_k": 1}).raise_for_status()
        return [hit["id"] for hit in response.json()["hits"]]

    with process(tmp_path / "index") as (url, started), httpx.Client(base_url=url, timeout=60) as client:
        with ThreadPoolExecutor(8) as threads:
            results = list(threads.map(lambda number: one(client, number), range(32)))
        assert results == [[f"d{number}"] for number in range(32)]
        client.close()
        started.send_signal(signal.SIGTERM)
        started.wait(timeout=60)
    with process(tmp_path / "index") as (url, _):
        assert httpx.get(f"{url}/ready", timeout=60).json()["documents"] == 32
