"""LanceDB: documents and queries get their prompts, and a stored table accepts only the encoder that made it."""

import asyncio
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, InputError

lancedb = pytest.importorskip("lancedb", reason="make test-integrations installs lancedb")
from edgeembed_runtime.integrations.lancedb import EdgeEmbedEmbeddings
from lancedb.embeddings import get_registry
from lancedb.pydantic import LanceModel, Vector


@pytest.fixture
def embeddings(prompted: Path) -> EdgeEmbedEmbeddings:
    made: EdgeEmbedEmbeddings = get_registry().get("edgeembed").create(bundle=str(prompted))
    return made


def make_table(embeddings: EdgeEmbedEmbeddings, folder: Path, documents: list[str | None]) -> Any:
    class Note(LanceModel):  # type: ignore[misc] # has no types
        text: str | None = embeddings.SourceField()
        vector: Vector(embeddings.ndims()) | None = embeddings.VectorField()  # type: ignore[valid-type]

    table = lancedb.connect(folder).create_table("notes", schema=Note)
    table.add([{"text": text} for text in documents], on_bad_vectors="null")
    return table


def test_documents_and_queries_get_their_prompts(
    embeddings: EdgeEmbedEmbeddings, encoder: Encoder, documents: list[str]
) -> None:
    np.testing.assert_array_equal(embeddings.compute_source_embeddings(documents), encoder.encode_document(documents))
    for query in ("bread", ["bread"]):
        np.testing.assert_array_equal(embeddings.compute_query_embeddings(query), encoder.encode_query(["bread"]))


def test_a_stored_table_is_opened_with_the_same_encoder(
    embeddings: EdgeEmbedEmbeddings, encoder: Encoder, documents: list[str], tmp_path: Path
) -> None:
    made = make_table(embeddings, tmp_path, [*documents])
    for table in (made, lancedb.connect(tmp_path).open_table("notes")):
        (found,) = table.search("bread recipe").metric("cosine").limit(1).to_list()
        assert found["text"] == documents[1]
        cosine = float(encoder.encode_query("bread recipe") @ encoder.encode_document(documents[1]))
        assert found["_distance"] == pytest.approx(1 - cosine, abs=1e-5)


def test_asynchronous_searches_return_the_same(
    embeddings: EdgeEmbedEmbeddings, documents: list[str], tmp_path: Path
) -> None:
    make_table(embeddings, tmp_path, [*documents])

    async def search() -> list[dict[str, Any]]:
        table = await (await lancedb.connect_async(tmp_path)).open_table("notes")
        found: list[dict[str, Any]] = await (await table.search("bread recipe")).limit(1).to_list()
        return found

    assert asyncio.run(search())[0]["text"] == documents[1]


def test_a_missing_text_has_no_vector(embeddings: EdgeEmbedEmbeddings, documents: list[str], tmp_path: Path) -> None:
    rows = make_table(embeddings, tmp_path, [documents[0], None, documents[1]]).to_arrow().to_pylist()
    assert [row["text"] is None for row in rows] == [row["vector"] is None for row in rows] == [False, True, False]


def test_a_table_rejects_another_encoder_at_the_same_path(
    replaced: Path, other_encoder: Path, documents: list[str], tmp_path: Path
) -> None:
    make_table(EdgeEmbedEmbeddings.create(bundle=str(replaced)), tmp_path / "lance", [*documents])
    shutil.rmtree(replaced)
    shutil.move(other_encoder, replaced)
    table = lancedb.connect(tmp_path / "lance").open_table("notes")
    with pytest.raises(InputError, match="not the encoder of the stored vectors"):
        table.search("bread recipe")


def test_variables_of_the_registry_stay_variables(prompted: Path) -> None:
    get_registry().set_var("encoder", str(prompted))
    embeddings = EdgeEmbedEmbeddings.create(bundle="$var:encoder")
    assert embeddings.bundle == str(prompted)
    assert embeddings.safe_model_dump()["bundle"] == "$var:encoder"


def test_errors_are_raised_at_once(embeddings: EdgeEmbedEmbeddings) -> None:
    with pytest.raises(InputError, match="text 0 is int"):
        embeddings.compute_source_embeddings_with_retry([1])
    with pytest.raises(InputError, match="text 0 is int"):
        embeddings.compute_query_embeddings_with_retry([1])
    with pytest.raises(InputError, match="neither a built-in encoder nor a folder"):
        EdgeEmbedEmbeddings.create(bundle="absent")


def test_copies_return_the_same(prompted: Path, encoder: Encoder) -> None:
    embeddings = EdgeEmbedEmbeddings.create(bundle=str(prompted), truncate_dim=64)
    assert embeddings.ndims() == 64
    (vector,) = pickle.loads(pickle.dumps(embeddings)).compute_query_embeddings("bread")
    np.testing.assert_array_equal(vector, encoder.encode_query("bread", truncate_dim=64))
