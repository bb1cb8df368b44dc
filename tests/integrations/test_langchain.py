"""LangChain: documents and queries get their prompts, in vector stores too; asynchronous methods do not block."""

import asyncio
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import Encoder, InputError

pytest.importorskip("langchain_core", reason="make test-integrations installs langchain-core")
from edgeembed_runtime.integrations.langchain import EdgeEmbedEmbeddings
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore


@pytest.fixture
def embeddings(prompted: Path) -> EdgeEmbedEmbeddings:
    return EdgeEmbedEmbeddings(prompted)


def test_documents_and_queries_get_their_prompts(
    embeddings: EdgeEmbedEmbeddings, encoder: Encoder, documents: list[str]
) -> None:
    assert isinstance(embeddings, Embeddings)
    assert embeddings.embed_documents(documents) == encoder.encode_document(documents).tolist()
    assert embeddings.embed_query("bread") == encoder.encode_query("bread").tolist()
    assert embeddings.embed_documents([]) == []


def test_a_vector_store_finds_the_nearest_document(embeddings: EdgeEmbedEmbeddings, documents: list[str]) -> None:
    store = InMemoryVectorStore.from_texts(documents, embeddings)
    ((found, score),) = store.similarity_search_with_score("bread recipe", k=1)
    assert found.page_content == documents[1]
    assert score == pytest.approx(_cosine(embeddings, "bread recipe", documents[1]))


def test_asynchronous_methods_return_the_same(embeddings: EdgeEmbedEmbeddings, documents: list[str]) -> None:
    async def embed() -> tuple[list[list[float]], list[float]]:
        return await embeddings.aembed_documents(documents), await embeddings.aembed_query("bread")

    assert asyncio.run(embed()) == (embeddings.embed_documents(documents), embeddings.embed_query("bread"))


def test_threads_and_copies_return_the_same(embeddings: EdgeEmbedEmbeddings, documents: list[str]) -> None:
    expected = embeddings.embed_documents(documents)
    assert pickle.loads(pickle.dumps(embeddings)).embed_documents(documents) == expected
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(embeddings.embed_documents, [documents] * 8)) == [expected] * 8


def test_truncate_dim_keeps_the_first_dimensions(prompted: Path, encoder: Encoder) -> None:
    truncated = EdgeEmbedEmbeddings(prompted, truncate_dim=64)
    assert truncated.embed_query("bread") == encoder.encode_query("bread", truncate_dim=64).tolist()
    assert len(truncated.embed_documents(["bread"])[0]) == 64


def test_bad_arguments_are_input_errors(embeddings: EdgeEmbedEmbeddings) -> None:
    with pytest.raises(InputError, match="neither a built-in encoder nor a folder"):
        EdgeEmbedEmbeddings("absent")
    with pytest.raises(InputError, match="expected a list of str"):
        embeddings.embed_documents("a single text")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="query 0 is list"):
        embeddings.embed_query(["bread"])  # type: ignore[arg-type]


def _cosine(embeddings: EdgeEmbedEmbeddings, query: str, document: str) -> float:
    return float(np.dot(embeddings.embed_query(query), embeddings.embed_documents([document])[0]))
