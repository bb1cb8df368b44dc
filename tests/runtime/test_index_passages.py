"""Long documents in an index: passages, the best passage per document, engines, updates and saving."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Index, InputError, Passage
from edgeembed_runtime.index.engine import Engine, EngineName, IndexPrecision
from edgeembed_runtime.index.passages import PassageSettings

_ENGINES: list[tuple[IndexPrecision, EngineName]] = [
    ("float32", "numpy"),
    ("binary", "numpy"),
    ("float32", "faiss-ivf"),
    ("float32", "faiss-hnsw"),
]
_SETTINGS = PassageSettings(max_tokens=10, overlap_tokens=2)


def _build(
    encoder: Encoder, documents: list[str], precision: IndexPrecision = "float32", engine: EngineName = "numpy"
) -> Index:
    if engine != "numpy":
        pytest.importorskip("faiss")
    chosen = Engine(engine, rescore=1, nlist=4 if engine == "faiss-ivf" else None, nprobe=4)
    return Index.build(encoder, documents, passages=_SETTINGS, precision=precision, engine=chosen)


def _long(words: str, count: int = 40) -> str:
    return f"{words} " * count


def test_end_of_a_long_document_is_a_passage(encoder: Encoder) -> None:
    long = _long("the cat", 2500) + "open a network socket"
    index = Index.build(encoder, ["read a file", long, "the dog"])
    hit = next(hit for hit in index.search("open a network socket", top_k=3) if hit.id == 1)
    assert hit.text == long
    assert hit.passage is not None
    assert hit.passage.text == long[hit.passage.start : hit.passage.end]
    assert hit.passage.end == len(long)


@pytest.mark.slow
def test_fact_at_the_end_of_5000_words_is_found_first_among_many_documents(shipped: Path) -> None:
    topics = ["the town hall", "a railway bridge", "the new library", "an old orchard", "the harbor", "a film festival"]
    reports = [
        f"In year {year}, {topic} was the subject of report {year * 7}. The council read it, {verb} it, and met again. "
        for year in range(1, 60)
        for topic in topics
        for verb in ("praised", "doubted")
    ]
    fact = "Emperor penguins breed on the sea ice of Antarctica in winter."
    long = "".join(reports)[:30_000] + fact
    assert len(long.split()) > 5_000
    others = [*reports[:100], "A guide to the birds of South America.", "Ice cream is sold on the beach in summer."]
    index = Index.build(Encoder("mini"), [*others, long, "Winter sports and where to see them"])
    (hit,) = index.search("Where do penguins have their young?", top_k=1)
    assert hit.id == len(others)
    assert hit.passage is not None
    assert hit.passage.start <= len(long) - len(fact)
    assert hit.passage.end == len(long)


def test_documents_that_fit_have_no_passage(encoder: Encoder) -> None:
    index = _build(encoder, ["read a file", ""])
    assert [hit.passage for hit in index.search("read a file")] == [None, None]


def test_without_passages_the_beginning_is_read(encoder: Encoder) -> None:
    long = _long("the cat") + "open a network socket"
    with pytest.warns(UserWarning, match="only the first 32 tokens were read"):
        index = Index.build(encoder, [long], passages=None)
    (hit,) = index.search("the cat", top_k=1)
    assert (hit.passage, hit.text) == (None, long)
    assert len(index._collection.rows.vectors) == 1


def test_given_embeddings_are_of_whole_documents(encoder: Encoder) -> None:
    index = Index.build(encoder, [_long("cat")], embeddings=np.ones((1, 8)), passages=_SETTINGS)
    assert index.search(np.ones(8))[0].passage is None
    assert index.search(np.ones(8))[0].score == pytest.approx(1)


@pytest.mark.parametrize(("precision", "engine"), _ENGINES)
def test_each_document_is_one_hit_with_its_best_passage(
    encoder: Encoder, precision: IndexPrecision, engine: EngineName
) -> None:
    documents = [_long("read the cat"), _long("a dog") + "the cat", "the cat", _long("open a socket"), "the dog"]
    index = _build(encoder, documents, precision, engine)
    assert len(index) == 5
    assert len(index._collection.rows.vectors) > 20
    everything = index.search("read the cat", top_k=None)
    assert sorted(hit.id for hit in everything) == [0, 1, 2, 3, 4]
    for top_k in (1, 2, 4, 5, 100):
        hits = index.search("read the cat", top_k=top_k)
        assert len({hit.id for hit in hits}) == min(top_k, 5)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert {hit.id: hit for hit in hits}.items() <= {hit.id: hit for hit in everything}.items()
    filtered = index.search("read the cat", filter=lambda _: True)
    assert filtered == everything
    for hit in everything:
        passages = [hit.passage] if hit.passage else []
        assert all(hit.text[each.start : each.end] == each.text for each in passages)
        alone = encoder.encode_document([passages[0].text if passages else hit.text])[0]
        assert hit.score == pytest.approx(float(alone @ encoder.encode_query("read the cat")), abs=2e-3)


@pytest.mark.parametrize(("precision", "engine"), _ENGINES)
def test_changes_keep_passages_with_their_documents(
    encoder: Encoder, precision: IndexPrecision, engine: EngineName, tmp_path: Path
) -> None:
    documents = [_long("the cat"), "read a file", _long("open a socket"), _long("the dog")]
    index = _build(encoder, documents, precision, engine)
    index.update([0, 1], [_long("network line"), _long("a") + "cat line"])
    index.remove([3])
    index.add([_long("the dog") + "cat"])
    index.update([2], ["socket"])
    expected = [_long("network line"), _long("a") + "cat line", "socket", _long("the dog") + "cat"]
    anew = _build(encoder, expected, precision, engine)
    index.save(tmp_path / "index")
    for each in (index, Index.open(tmp_path / "index", encoder), pickle.loads(pickle.dumps(index))):  # noqa: S301
        for query in ("network line", "cat line", "socket", "the dog", "cat"):
            found = [(hit.text, round(hit.score, 5), hit.passage) for hit in each.search(query, top_k=None)]
            wanted = [(hit.text, round(hit.score, 5), hit.passage) for hit in anew.search(query, top_k=None)]
            assert sorted(found, key=str) == sorted(wanted, key=str)
    assert [hit.text for hit in index.search("the dog", top_k=1)] == [expected[3]]


def test_settings_are_saved(encoder: Encoder, tmp_path: Path) -> None:
    _build(encoder, ["cat"]).save(tmp_path / "index")
    manifest = json.loads((tmp_path / "index" / "index.json").read_bytes())
    assert manifest["passages"] == {"max_tokens": 10, "overlap_tokens": 2}
    long = _long("the cat") + "open a socket"
    appended = Index.append_to(tmp_path / "index", [long], encoder)
    hit = next(hit for hit in appended.search("open a socket") if hit.id == 1)
    assert hit.passage is not None
    assert len(encoder.tokenizer.tokenize(hit.passage.text).ids) <= 10
    Index.build(encoder, ["cat"], passages=None).save(tmp_path / "whole")
    opened = Index.open(tmp_path / "whole", encoder)
    with pytest.warns(UserWarning, match="tokens were read"):
        opened.add([long])
    assert opened.search("cat")[0].passage is None


def test_blank_document_of_any_length_is_one_passage(encoder: Encoder) -> None:
    index = _build(encoder, [" " * 100_000, "\n", "cat"])
    assert len(index._collection.rows.vectors) == 3
    assert index.search("cat")[0].id == 2


@pytest.mark.parametrize(
    ("passages", "message"),
    [
        (True, "the passages are bool, expected PassageSettings, or None"),
        (128, "the passages are int, expected PassageSettings, or None"),
        (PassageSettings(max_tokens=33), "max_tokens is 33, expected at most 32"),
    ],
)
def test_invalid_settings_raise(encoder: Encoder, passages: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Index.build(encoder, [], passages=passages)


def test_passage_states_its_characters(encoder: Encoder) -> None:
    text = _long("read the file", 8) + "Grüße ☕ cat"
    hits = _build(encoder, [text]).search("cat")
    assert isinstance(hits[0].passage, Passage)
    assert hits[0].passage.text == text[hits[0].passage.start : hits[0].passage.end]
