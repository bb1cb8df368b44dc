"""spaCy: the component sets the embeddings of documents, also in other processes and after it was stored."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import Encoder, InputError

spacy = pytest.importorskip("spacy", reason="make test-integrations installs spacy")
from spacy.language import Language
from spacy.tokens import Doc, DocBin


@pytest.fixture
def nlp() -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("edgeembed", config={"bundle": "nano"})  # found by the entry point
    return nlp


@pytest.fixture(scope="module")
def nano() -> Encoder:
    return Encoder("nano")


def test_a_document_gets_its_embedding(nlp: Language, nano: Encoder) -> None:
    doc = nlp("How to bake rye bread")
    np.testing.assert_array_equal(doc._.embedding, nano.encode(doc.text))
    np.testing.assert_array_equal(doc.vector, doc._.embedding)
    assert doc.vector_norm == pytest.approx(1)
    assert nlp("")._.embedding.shape == (256,)


@pytest.mark.parametrize("n_process", [1, 2])
def test_a_stream_of_documents_gets_the_same_embeddings(
    nlp: Language, nano: Encoder, documents: list[str], n_process: int
) -> None:
    docs = list(nlp.pipe(documents * 3, batch_size=2, n_process=n_process))
    np.testing.assert_array_equal([doc._.embedding for doc in docs], nano.encode(documents * 3))


@pytest.mark.filterwarnings("ignore:.*W007")
def test_documents_are_compared_by_their_embeddings(nlp: Language, nano: Encoder, documents: list[str]) -> None:
    first, second, _ = nlp.pipe(documents)
    assert first.similarity(second) == pytest.approx(float(nano.similarity(*nano.encode(documents[:2]))[0, 0]))


def test_a_stored_pipeline_returns_the_same(nlp: Language, tmp_path: Path) -> None:
    expected = nlp("bread")._.embedding
    nlp.to_disk(tmp_path)
    for copy in (spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp)), spacy.blank("en").from_config(nlp.config)):
        np.testing.assert_array_equal(copy("bread")._.embedding, expected)


def test_stored_documents_keep_their_embeddings(nlp: Language, documents: list[str]) -> None:
    docs = list(nlp.pipe(documents))
    stored = DocBin(store_user_data=True, docs=docs).to_bytes()
    opened = list(DocBin().from_bytes(stored).get_docs(nlp.vocab))
    assert all(isinstance(doc, Doc) for doc in opened)
    np.testing.assert_array_equal([doc._.embedding for doc in opened], [doc._.embedding for doc in docs])


def test_settings_of_the_component(nano: Encoder) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("edgeembed", name="small", config={"bundle": "nano", "truncate_dim": 64, "threads": None})
    np.testing.assert_array_equal(nlp("bread")._.embedding, nano.encode("bread", truncate_dim=64))
    assert nlp.analyze_pipes()["summary"]["small"]["assigns"] == ["doc._.embedding"]
    with pytest.raises(InputError, match="neither a built-in encoder nor a folder"):
        nlp.add_pipe("edgeembed", config={"bundle": "absent"})
