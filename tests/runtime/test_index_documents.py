"""The documents of an index: ids, metadata, updates, access by id, filters, several queries, and pickling."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Document, Encoder, Index, InputError, UnknownTextWarning
from edgeembed_runtime.index.engine import EngineName, IndexPrecision

_TEXTS = ["the cat", "the dog", "read a file", "open a socket"]
_IDS: list[int | str] = ["cat", 7, "file", -2]
_METADATA: list[dict[str, Any]] = [{"lang": "en", "year": 2020}, {"lang": "de"}, {}, {"lang": "en", "tags": ["net"]}]
_ENGINES: list[tuple[IndexPrecision, EngineName]] = [
    ("float32", "numpy"),
    ("int8", "numpy"),
    ("binary", "numpy"),
    ("float32", "faiss-ivf"),
    ("float32", "faiss-hnsw"),
]


@pytest.fixture
def index(encoder: Encoder) -> Index:
    return Index.build(encoder, _TEXTS, ids=_IDS, metadata=_METADATA)


def _needs(engine: EngineName) -> None:
    if engine != "numpy":
        pytest.importorskip("faiss")


def _documents(index: Index) -> list[Document]:
    return list(index)


def test_documents_have_id_text_and_metadata(index: Index) -> None:
    assert _documents(index) == [Document(*each) for each in zip(_IDS, _TEXTS, _METADATA, strict=True)]
    assert index.get("cat") == Document("cat", "the cat", {"lang": "en", "year": 2020})
    assert index.get(-2) == Document(-2, "open a socket", {"lang": "en", "tags": ["net"]})
    assert index.get(0) is None
    assert index.get("7") is None
    for present in _IDS:
        assert present in index
    absent: list[object] = ["7", 0, True, None, []]
    for other in absent:
        assert other not in index
    with pytest.raises(InputError, match="None is not a document id"):
        index.get(None)  # type: ignore[arg-type]


def test_hits_have_id_text_and_metadata(index: Index) -> None:
    (hit,) = index.search("open a socket", top_k=1)
    assert (hit.id, hit.text, hit.metadata, hit.passage) == (-2, "open a socket", {"lang": "en", "tags": ["net"]}, None)


def test_changes_of_returned_or_given_metadata_do_not_change_the_index(encoder: Encoder) -> None:
    given: dict[str, Any] = {"tags": ["a"]}
    index = Index.build(encoder, ["cat"], metadata=[given])
    given["tags"].append("b")
    document = index.get(0)
    assert document is not None
    document.metadata["tags"].append("c")
    index.search("cat")[0].metadata["more"] = 1
    next(iter(index)).metadata.clear()
    assert index.get(0) == Document(0, "cat", {"tags": ["a"]})


def test_chosen_integers_are_above_all_ids(encoder: Encoder) -> None:
    index = Index.build(encoder, ["cat", "dog"])
    assert index.add(["file"], ids=["x"]) == ["x"]
    assert index.add(["file"]) == [2]
    assert index.add(["file", "line"], ids=[10, 5]) == [10, 5]
    assert index.add(["file", "line"]) == [11, 12]
    index.remove([12])
    assert index.add(["file"], ids=[12]) == [12]
    assert index.add([]) == []
    assert index.add(["file"]) == [13]
    index.add(["last"], ids=[(1 << 63) - 1])
    with pytest.raises(InputError, match="the index has no larger integers for ids, expected ids for the new"):
        index.add(["file"])
    assert len(index) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": ["a", "cat"]}, "the index has a document with the id 'cat' already, expected new ids; to replace"),
        ({"ids": [7, "cat"]}, "the index has a document with the id 7, 'cat' already"),
        ({"ids": ["a", "a"]}, "the id 'a' is there twice"),
        ({"ids": ["a"]}, "there are 1 ids for 2 documents"),
        ({"ids": ["a", None]}, "None is not a document id"),
        ({"metadata": [{}]}, "there are 1 metadata for 2 documents"),
        ({"metadata": [{}, {"a": {}}]}, "the metadata of document 1: 'a' is {}, expected"),
    ],
)
def test_addition_with_invalid_ids_or_metadata_adds_nothing(
    index: Index, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        index.add(["one", "two"], **arguments)
    assert len(index) == 4
    assert index.add(["one"]) == [8]


def test_taken_ids_raise_before_documents_are_encoded(
    index: Index, encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.save(tmp_path / "index")
    monkeypatch.setattr(Encoder, "encode_document", None)
    with pytest.raises(InputError, match="the index has a document with the id 'cat' already"):
        index.add(["one"], ids=["cat"])
    with pytest.raises(InputError, match="the index has a document with the id 'cat' already"):
        Index.append_to(tmp_path / "index", ["one"], encoder, ids=["cat"])
    with pytest.raises(InputError, match="the index has no document with the id 'dog'"):
        index.update(["dog"], ["one"])


@pytest.mark.parametrize(("precision", "engine"), _ENGINES)
def test_update_replaces_texts_and_metadata_in_place(
    encoder: Encoder, precision: IndexPrecision, engine: EngineName
) -> None:
    _needs(engine)
    index = Index.build(encoder, _TEXTS, ids=_IDS, metadata=_METADATA, precision=precision, engine=engine)
    index.search("the cat", top_k=1)
    index.update(["file", "cat"], ["network line", "open line"], metadata=[{"new": True}, {}])
    assert [document.id for document in index] == _IDS
    assert index.get("file") == Document("file", "network line", {"new": True})
    assert index.get("cat") == Document("cat", "open line", {})
    assert [index.search(text, top_k=1)[0].id for text in ("network line", "open line", "the dog")] == [
        "file",
        "cat",
        7,
    ]
    index.update(["cat"], metadata=[{"only": "metadata"}])
    assert index.get("cat") == Document("cat", "open line", {"only": "metadata"})
    index.update([7], ["the cat"])
    assert index.get(7) == Document(7, "the cat", {"lang": "de"})
    assert index.search("the cat", top_k=1)[0].id == 7
    index.update([7], ["a"], embeddings=[[1.0] + [0.0] * 7])
    assert index.search(np.eye(8)[0], top_k=1)[0].score == pytest.approx(1, abs=0.01)
    index.update([], [])
    assert len(index) == 4


def test_updated_documents_tie_in_their_order(encoder: Encoder) -> None:
    index = Index.build(encoder, ["cat", "dog", "cat", "cat"])
    index.update([0, 2], ["dog", "dog"])
    assert [hit.id for hit in index.search("dog", top_k=3)] == [0, 1, 2]
    index.remove([1])
    assert [hit.id for hit in index.search("dog", top_k=2)] == [0, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["cat", "none"], ["a", "b"]), "the index has no document with the id 'none', expected ids of its documents"),
        ((["cat", "cat"], ["a", "b"]), "the id 'cat' is there twice"),
        ((["cat", 7], ["a"]), "there are 2 ids for 1 documents"),
        ((["cat"],), "neither documents nor metadata were given, expected the new documents or metadata; pass them"),
        ((["cat"], [None]), "document 0 is NoneType"),
        (("cat", ["a"]), "the ids are str, expected a list"),
    ],
)
def test_invalid_update_changes_nothing(index: Index, arguments: tuple[Any, ...], message: str) -> None:
    before = _documents(index)
    with pytest.raises(InputError, match=message):
        index.update(*arguments)
    with pytest.raises(InputError, match="embeddings without documents were given"):
        index.update(["cat"], metadata=[{}], embeddings=np.ones((1, 8)))
    with pytest.raises(InputError, match="there are 2 metadata for 1 documents"):
        index.update(["cat"], metadata=[{}, {}])
    assert _documents(index) == before


def test_removal_by_id_keeps_the_other_documents(index: Index) -> None:
    index.remove(["cat", -2, "cat"])
    assert [document.id for document in index] == [7, "file"]
    assert "cat" not in index
    assert [hit.id for hit in index.search("read a file")] == ["file", 7]
    with pytest.raises(InputError, match="the index has no document with the id 'cat', expected"):
        index.remove([7, "cat"])
    assert index.add(["the cat"], ids=["cat"]) == ["cat"]


def test_ids_and_metadata_are_saved(index: Index, encoder: Encoder, tmp_path: Path) -> None:
    index.update(["file"], ["read the file"])
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", encoder, verify=True)
    assert _documents(opened) == _documents(index)
    assert opened.search("read the file", top_k=None) == index.search("read the file", top_k=None)
    assert opened.add(["new"]) == [8]
    appended = Index.append_to(tmp_path / "index", ["line"], encoder, ids=["line"], metadata=[{"n": 1}])
    assert appended.get("line") == Document("line", "line", {"n": 1})
    with pytest.raises(InputError, match="the index has a document with the id 'line' already"):
        Index.append_to(tmp_path / "index", ["line"], encoder, ids=["line"])
    assert _documents(Index.open(tmp_path / "index", encoder)) == _documents(appended)


@pytest.mark.parametrize(("precision", "engine"), _ENGINES)
def test_filtered_search_scores_all_matching_documents(
    encoder: Encoder, precision: IndexPrecision, engine: EngineName
) -> None:
    _needs(engine)
    vectors = np.random.default_rng(0).standard_normal((500, 8))
    metadata = [{"n": i, "even": i % 2 == 0} for i in range(500)]
    index = Index.build(
        encoder, map(str, range(500)), metadata=metadata, embeddings=vectors, precision=precision, engine=engine
    )
    everything = {hit.id: hit for hit in index.search(vectors[0], top_k=None)}
    for condition, expected in (
        ({"even": True, "n": {"$lt": 100}}, range(0, 100, 2)),
        (lambda metadata: metadata["n"] in (3, 400), (3, 400)),
        ({"n": 1000}, ()),
    ):
        best = sorted((everything[i] for i in expected), key=lambda hit: -hit.score)
        assert index.search(vectors[0], top_k=5, filter=condition) == best[:5]
        assert index.search(vectors[0], top_k=None, filter=condition) == best


def test_invalid_filter_or_minimum_raises(index: Index) -> None:
    with pytest.raises(InputError, match="the filter is 'en', expected a dict"):
        index.search("cat", filter="en")  # type: ignore[call-overload]
    for minimum in (True, "0", float("nan"), float("inf")):
        with pytest.raises(InputError, match=r"min_score is .*, expected a finite number, or None for no minimum"):
            index.search("cat", min_score=minimum)  # type: ignore[arg-type]


@pytest.mark.parametrize(("precision", "engine"), _ENGINES)
def test_minimum_score_drops_lower_hits(encoder: Encoder, precision: IndexPrecision, engine: EngineName) -> None:
    _needs(engine)
    index = Index.build(encoder, _TEXTS, precision=precision, engine=engine)
    hits = index.search("the dog", top_k=None)
    assert index.search("the dog", top_k=None, min_score=hits[1].score) == hits[:2]
    assert index.search("the dog", top_k=1, min_score=-1) == hits[:1]
    assert index.search("the dog", min_score=2) == []
    assert index.search("the dog", min_score=1e39) == []
    assert index.search("the dog", top_k=1, min_score=np.float32(0.5)) == hits[:1]  # type: ignore[call-overload]


@pytest.mark.parametrize(("precision", "engine"), _ENGINES)
def test_several_queries_have_the_hits_of_each_query(
    encoder: Encoder, precision: IndexPrecision, engine: EngineName
) -> None:
    _needs(engine)
    vectors = np.random.default_rng(0).standard_normal((300, 8))
    index = Index.build(encoder, map(str, range(300)), embeddings=vectors, precision=precision, engine=engine)
    single = [index.search(vector, top_k=3) for vector in vectors[:20]]
    assert index.search(vectors[:20], top_k=3) == single
    assert index.search(vectors[:1], top_k=3) == single[:1]
    texts = ["the cat", "the dog"]
    assert index.search(texts, top_k=None) == [index.search(text, top_k=None) for text in texts]
    assert index.search(tuple(texts), filter=lambda _: False) == [[], []]


def test_no_queries_have_no_hits(index: Index) -> None:
    assert index.search([]) == []
    assert index.search(np.empty((0, 8))) == []


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        (["cat", " "], "query 1 is blank, expected a text that says what to look for"),
        (["cat", 3], "query 1 is int, expected a text"),
        ([3, "cat"], "query 0 is int, expected a text"),
        (np.ones((2, 7)), r"the queries have shape \(2, 7\), expected a text, a list of texts, or vectors of 8"),
        (np.ones(7), r"the query has shape \(7,\)"),
        (np.ones((1, 1, 8)), r"the query has shape \(1, 1, 8\)"),
        (np.full((2, 8), np.nan), "a query contains NaN or infinity"),
        ([[1.0] * 8, [1.0]], "the query is list"),
        ({"a": 1}, "the query is dict"),
        (None, "the query is NoneType"),
    ],
)
def test_invalid_queries_raise(index: Index, queries: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        index.search(queries)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("precision", "engine"), _ENGINES)
def test_index_can_be_pickled(encoder: Encoder, precision: IndexPrecision, engine: EngineName, tmp_path: Path) -> None:
    _needs(engine)
    built = Index.build(encoder, _TEXTS, ids=_IDS, metadata=_METADATA, precision=precision, engine=engine)
    built.save(tmp_path / "index")
    changed = Index.open(tmp_path / "index", encoder)
    changed.add(["network"])
    for index in (built, Index.open(tmp_path / "index", encoder), changed):
        copy = pickle.loads(pickle.dumps(index))  # noqa: S301 - our own
        assert _documents(copy) == _documents(index)
        assert copy.search("the dog") == index.search("the dog")
        assert copy.add(["line"]) == index.add(["line"])
        copy.remove(["cat"])
        assert "cat" in index
    loaded = pickle.loads(pickle.dumps(changed))  # noqa: S301
    Index.append_to(tmp_path / "index", ["line"], encoder)
    with pytest.raises(InputError, match="was changed since this index was opened or saved"):
        loaded.save(tmp_path / "index", force=True)


def test_pickle_has_no_documents_of_a_newer_state(encoder: Encoder) -> None:
    index = Index.build(encoder, ["cat"], ids=["a"])
    rows = index._collection.rows
    index.add(["dog"], ids=["b"])
    copy = pickle.loads(pickle.dumps(rows))  # noqa: S301
    assert [document.id for document in copy.table] == ["a"]
    assert (len(copy.vectors), copy.table.position("b")) == (1, None)


def test_iteration_is_a_snapshot(index: Index) -> None:
    documents = iter(index)
    first = next(documents)
    index.add(["new"])
    index.update([7], ["changed"])
    index.remove(["file"])
    assert [first.id, *(document.id for document in documents)] == _IDS


def test_reads_are_consistent_while_documents_change(encoder: Encoder) -> None:
    index = Index.build(encoder, ["cat"] * 100, ids=[f"base {i}" for i in range(100)], metadata=[{"n": 0}] * 100)

    def change(thread: int) -> None:
        names = [f"{thread} {i}" for i in range(5)]
        for turn in range(10):
            index.add(["dog"] * 5, ids=names, metadata=[{"n": 1}] * 5)
            index.update(names[:2], [f"turn {turn}"] * 2)
            index.remove(names)

    def read() -> None:
        for _ in range(30):
            assert len(index.search("cat", top_k=None, filter={"n": 0})) == 100
            assert index.get("base 50") == Document("base 50", "cat", {"n": 0})
            assert all(document.id.startswith("base") == (document.text == "cat") for document in index)

    work: list[Callable[[], None]] = [lambda: change(0), lambda: change(1), read, read]
    with ThreadPoolExecutor(4) as pool:
        for task in [pool.submit(each) for each in work]:
            task.result()
    assert len(index) == 100


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "binary"])
def test_blank_and_unknown_documents_are_found_last(encoder: Encoder, precision: IndexPrecision) -> None:
    with pytest.warns(UnknownTextWarning, match="1 of 4 texts") as warned:
        index = Index.build(encoder, ["", "中文", "open a socket", "the cat 中"], precision=precision)
    assert [warning.filename for warning in warned] == [__file__]
    hits = index.search("the cat")
    assert sorted(hit.id for hit in hits[:2]) == [2, 3]
    assert [(hit.id, hit.score) for hit in hits[2:]] == [(0, -1), (1, -1)]
    assert len(index.search("the cat", min_score=-0.9999)) == 2
    index = Index.build(encoder, ["\u200b", "...", "\ufffd", "the cat", "---- " * 500], precision=precision)
    assert [(hit.id, hit.score) for hit in index.search("a dog")[1:]] == [(0, -1), (1, -1), (2, -1), (4, -1)]
    index.update([3], ["\u00ad"])
    assert [hit.score for hit in index.search("a dog")] == [-1] * 5
