"""Haystack: the two embedders use their prompts, run in pipelines, and are stored with them."""

import asyncio
import pickle
from pathlib import Path

import pytest
from edgeembed_runtime import Encoder, InputError

pytest.importorskip("haystack", reason="make test-integrations installs haystack-ai")
from edgeembed_runtime.integrations.haystack import EdgeEmbedDocumentEmbedder, EdgeEmbedTextEmbedder
from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.components.writers import DocumentWriter
from haystack.core.errors import DeserializationError
from haystack.document_stores.in_memory import InMemoryDocumentStore

_MODULE = "edgeembed_runtime.integrations.haystack"


def test_queries_and_documents_get_their_prompts(prompted: Path, encoder: Encoder, documents: list[str]) -> None:
    result = EdgeEmbedTextEmbedder(prompted).run("bread")
    assert result == {"embedding": encoder.encode_query("bread").tolist()}
    given = [Document(content=text) for text in documents]
    embedded = EdgeEmbedDocumentEmbedder(prompted).run(given)["documents"]
    assert [each.embedding for each in embedded] == encoder.encode_document(documents).tolist()
    assert [each.id for each in embedded] == [each.id for each in given]
    assert [each.embedding for each in given] == [None] * 3
    assert EdgeEmbedDocumentEmbedder(prompted).run([]) == {"documents": []}


def test_metadata_fields_are_put_before_the_content(prompted: Path, encoder: Encoder) -> None:
    embedder = EdgeEmbedDocumentEmbedder(prompted, meta_fields_to_embed=["title", "year", "absent"])
    document = Document(content="Bake it.", meta={"title": "Bread", "year": None})
    (embedded,) = embedder.run(
        [
            document,
        ][:1]
    )["documents"]
    assert embedded.embedding == encoder.encode_document(["Bread\nBake it."])[0].tolist()
    (embedded,) = embedder.run([Document(meta={"title": "Bread"})])["documents"]
    assert embedded.embedding == encoder.encode_document(["Bread\n"])[0].tolist()


@pytest.fixture
def store(prompted: Path, documents: list[str]) -> InMemoryDocumentStore:
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    indexing = Pipeline()
    indexing.add_component("embedder", EdgeEmbedDocumentEmbedder(prompted))
    indexing.add_component("writer", DocumentWriter(store))
    indexing.connect("embedder.documents", "writer.documents")
    indexing.run({"embedder": {"documents": [Document(content=text) for text in documents]}})
    return store


@pytest.fixture
def search(prompted: Path, store: InMemoryDocumentStore) -> Pipeline:
    search = Pipeline()
    search.add_component("embedder", EdgeEmbedTextEmbedder(prompted))
    search.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=1))
    search.connect("embedder.embedding", "retriever.query_embedding")
    return search


def test_a_pipeline_finds_the_nearest_document(search: Pipeline, documents: list[str]) -> None:
    given = {"embedder": {"text": "bread recipe"}}
    for result in (search.run(given), asyncio.run(search.run_async(given))):
        assert [each.content for each in result["retriever"]["documents"]] == [documents[1]]


def test_a_stored_pipeline_loads_if_the_module_is_allowed(search: Pipeline, prompted: Path, encoder: Encoder) -> None:
    stored = search.dumps()
    with pytest.raises(DeserializationError, match=_MODULE):
        Pipeline.loads(stored)
    loaded = Pipeline.loads(stored, allowed_modules=[_MODULE])
    embedder = loaded.get_component("embedder")
    assert embedder.run("bread")["embedding"] == encoder.encode_query("bread").tolist()
    assert embedder.to_dict()["init_parameters"] == {"bundle": str(prompted), "threads": 1, "truncate_dim": None}


def test_every_parameter_of_a_document_embedder_is_stored() -> None:
    embedder = EdgeEmbedDocumentEmbedder("nano", 2, 64, ["title"], " ")
    assert EdgeEmbedDocumentEmbedder(**embedder.to_dict()["init_parameters"]).to_dict() == embedder.to_dict()
    assert len(pickle.loads(pickle.dumps(embedder)).run([Document(content="bread")])["documents"][0].embedding) == 64


def test_a_bundle_is_loaded_by_warm_up() -> None:
    for embedder in (EdgeEmbedTextEmbedder("absent"), EdgeEmbedDocumentEmbedder("absent")):
        with pytest.raises(InputError, match="neither a built-in encoder nor a folder"):
            embedder.warm_up()


def test_a_query_and_documents_cannot_be_mixed_up(prompted: Path) -> None:
    with pytest.raises(InputError, match="expected str"):
        EdgeEmbedTextEmbedder(prompted).run([Document(content="bread")])
    with pytest.raises(InputError, match="list of Haystack documents"):
        EdgeEmbedDocumentEmbedder(prompted).run("bread")
