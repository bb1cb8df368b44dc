"""Chroma: documents and queries get their prompts, and a stored collection accepts only the encoder that made it."""

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import Encoder, InputError

chromadb = pytest.importorskip("chromadb", reason="make test-integrations installs chromadb")
from edgeembed_runtime.integrations.chroma import EdgeEmbedEmbeddingFunction


@pytest.fixture
def function(prompted: Path) -> EdgeEmbedEmbeddingFunction:
    return EdgeEmbedEmbeddingFunction(prompted)


def test_documents_and_queries_get_their_prompts(
    function: EdgeEmbedEmbeddingFunction, encoder: Encoder, documents: list[str]
) -> None:
    np.testing.assert_array_equal(function(documents), encoder.encode_document(documents))
    np.testing.assert_array_equal(function.embed_query(["bread"]), encoder.encode_query(["bread"]))


def test_a_stored_collection_is_opened_with_the_same_encoder(
    function: EdgeEmbedEmbeddingFunction, encoder: Encoder, documents: list[str], tmp_path: Path
) -> None:
    client = chromadb.PersistentClient(tmp_path)
    made = client.create_collection("notes", embedding_function=function)
    made.add(ids=["0", "1", "2"], documents=documents)
    for notes in (made, chromadb.PersistentClient(tmp_path).get_collection("notes")):
        found = notes.query(query_texts=["bread recipe"], n_results=1)
        assert found["documents"] == [[documents[1]]]
        cosine = float(encoder.encode_query("bread recipe") @ encoder.encode_document(documents[1]))
        assert found["distances"][0][0] == pytest.approx(1 - cosine, abs=1e-5)
        assert notes.configuration["hnsw"]["space"] == "cosine"


def test_a_collection_rejects_another_encoder_at_the_same_path(
    replaced: Path, other_encoder: Path, documents: list[str], tmp_path: Path
) -> None:
    client = chromadb.PersistentClient(tmp_path / "chroma")
    made = client.create_collection("notes", embedding_function=EdgeEmbedEmbeddingFunction(replaced))
    made.add(ids=["0", "1", "2"], documents=documents)
    shutil.rmtree(replaced)
    shutil.move(other_encoder, replaced)
    notes = chromadb.PersistentClient(tmp_path / "chroma").get_collection("notes")
    with pytest.raises(ValueError, match="not the encoder of the stored vectors"):
        notes.query(query_texts=["bread recipe"])


def test_a_configuration_may_move_the_bundle_but_not_replace_it(
    function: EdgeEmbedEmbeddingFunction, replaced: Path, other_encoder: Path
) -> None:
    config = function.get_config()
    assert EdgeEmbedEmbeddingFunction.build_from_config(config).get_config() == config
    function.validate_config_update(config, EdgeEmbedEmbeddingFunction(replaced).get_config())
    for changed in (EdgeEmbedEmbeddingFunction(other_encoder), EdgeEmbedEmbeddingFunction(replaced, truncate_dim=64)):
        with pytest.raises(InputError, match="make a new collection"):
            function.validate_config_update(config, changed.get_config())
    with pytest.raises(InputError, match=r"the configuration has \['device'\]"):
        EdgeEmbedEmbeddingFunction.build_from_config({"bundle": None, "device": "cpu"})


def test_truncated_embeddings_are_stored(prompted: Path, documents: list[str], tmp_path: Path) -> None:
    function = EdgeEmbedEmbeddingFunction(prompted, truncate_dim=64)
    notes = chromadb.PersistentClient(tmp_path).create_collection("notes", embedding_function=function)
    notes.add(ids=["0", "1", "2"], documents=documents)
    notes = chromadb.PersistentClient(tmp_path).get_collection("notes")
    assert notes.query(query_texts=["bread recipe"], n_results=1)["documents"] == [[documents[1]]]
    assert notes.get(include=["embeddings"])["embeddings"].shape == (3, 64)


def test_a_single_text_is_an_error(function: EdgeEmbedEmbeddingFunction) -> None:
    for embed in (function, function.embed_query):
        with pytest.raises(InputError, match="expected a list of str"):
            embed("bread")


def test_threads_and_copies_return_the_same(function: EdgeEmbedEmbeddingFunction, documents: list[str]) -> None:
    expected = np.array(function(documents))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(function))(documents), expected)
    with ThreadPoolExecutor(4) as pool:
        np.testing.assert_array_equal(list(pool.map(function, [documents] * 8)), [expected] * 8)
