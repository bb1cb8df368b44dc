"""LlamaIndex: nodes and queries get their prompts, in an index too; asynchronous methods do not block."""

import asyncio
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime import Encoder, InputError

pytest.importorskip("llama_index.core", reason="make test-integrations installs llama-index-core")
from edgeembed_runtime.integrations.llamaindex import EdgeEmbedEmbedding
from llama_index.core import Document, StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.base.embeddings.base import BaseEmbedding


@pytest.fixture
def embedding(prompted: Path) -> EdgeEmbedEmbedding:
    return EdgeEmbedEmbedding(prompted)


def test_texts_and_queries_get_their_prompts(
    embedding: EdgeEmbedEmbedding, encoder: Encoder, documents: list[str]
) -> None:
    assert isinstance(embedding, BaseEmbedding)
    expected = encoder.encode_document(documents).tolist()
    assert embedding.get_text_embedding_batch(documents) == expected
    assert embedding.get_text_embedding(documents[0]) == expected[0]
    assert embedding.get_query_embedding("bread") == encoder.encode_query("bread").tolist()
    assert embedding.model_name == "edgeembed-nano"


def test_an_index_finds_the_nearest_node_after_it_was_stored(
    embedding: EdgeEmbedEmbedding, documents: list[str], tmp_path: Path
) -> None:
    built = VectorStoreIndex.from_documents([Document(text=text) for text in documents], embed_model=embedding)
    built.storage_context.persist(str(tmp_path))
    opened = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)), embed_model=embedding)
    for index in (built, opened):
        (hit,) = index.as_retriever(similarity_top_k=1).retrieve("bread recipe")
        assert hit.text == documents[1]


def test_asynchronous_methods_return_the_same(embedding: EdgeEmbedEmbedding, documents: list[str]) -> None:
    async def embed() -> tuple[Any, ...]:
        batch = await embedding.aget_text_embedding_batch(documents)
        return batch, await embedding.aget_text_embedding("bread"), await embedding.aget_query_embedding("bread")

    expected = embedding.get_text_embedding_batch(documents)
    assert asyncio.run(embed()) == (
        expected,
        embedding.get_text_embedding("bread"),
        embedding.get_query_embedding("bread"),
    )


def test_asynchronous_methods_let_the_event_loop_run(
    embedding: EdgeEmbedEmbedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    class WaitingEncoder:
        def encode_query(self, *_: object, **__: object) -> None:
            assert released.wait(60), "the event loop is blocked"
            raise InputError("done")

    async def embed() -> None:
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(released.set))
        with pytest.raises(InputError, match="done"):
            await embedding.aget_query_embedding("bread")

    monkeypatch.setattr(embedding, "_encoder", WaitingEncoder())
    asyncio.run(embed())


def test_copies_return_the_same(prompted: Path) -> None:
    embedding = EdgeEmbedEmbedding(prompted, truncate_dim=32, embed_batch_size=4)
    expected = embedding.get_query_embedding("bread")
    assert len(expected) == 32
    for copy in (pickle.loads(pickle.dumps(embedding)), EdgeEmbedEmbedding.from_dict(embedding.to_dict())):
        assert copy.get_query_embedding("bread") == expected
        assert (copy.bundle, copy.embed_batch_size) == (str(prompted), 4)


def test_an_unknown_bundle_is_an_input_error() -> None:
    with pytest.raises(InputError, match="neither a built-in encoder nor a folder"):
        EdgeEmbedEmbedding("absent")
