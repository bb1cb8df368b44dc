"""Index: round trips, additions and removals, errors, and atomic saving."""

import contextlib
import json
import os
import pickle
import resource
import shutil
import signal
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Engine, Index, InputError, MissingExtraError, RelevanceRanker
from edgeembed_runtime.documents import DocumentId
from edgeembed_runtime.index import folder as folder_module
from edgeembed_runtime.index.engine import EngineName, IndexPrecision
from edgeembed_runtime.index.table import DocumentBatch, DocumentTable
from edgeembed_runtime.storage.json_fields import with_own_sha256

Make = Callable[..., Path]

_EXCHANGES = pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="cannot exchange two folders")

_DOCUMENTS = [
    "open a socket",
    "read the file",
    "ligne \u2028 fran\u00e7aise\nof two lines",
    "",
    "the dog",
    "read the file",
]


@pytest.fixture
def saved(encoder: Encoder, tmp_path: Path) -> Path:
    Index.build(encoder, _DOCUMENTS).save(tmp_path / "index")
    return tmp_path / "index"


def _change_manifest(folder: Path, change: dict[str, Any]) -> None:
    """Change fields of index.json, and its checksum to theirs."""
    manifest = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    (folder / "index.json").write_text(json.dumps(with_own_sha256({**manifest, **change})), encoding="utf-8")


@contextlib.contextmanager
def small_files() -> Iterator[None]:
    """Limit files to 4 kB, as if the disk were full; the limit applies to the log of the tests too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_opened_index_returns_the_hits_of_the_built_index(saved: Path, encoder: Encoder) -> None:
    built, opened = Index.build(encoder, _DOCUMENTS), Index.open(str(saved), encoder)
    assert len(opened) == len(built) == len(_DOCUMENTS)
    assert opened.search("read a file", top_k=4) == built.search("read a file", top_k=4)
    assert opened.search("read a file", top_k=100) == RelevanceRanker(encoder).rank("read a file", _DOCUMENTS)
    assert [hit.id for hit in opened.search("read the file", top_k=2)] == [1, 5]


def test_index_folder_contains_npy_jsonl_and_json(saved: Path, encoder: Encoder) -> None:
    vectors = np.load(saved / "vectors.npy", allow_pickle=False)
    assert vectors.dtype == np.float32
    expected = encoder.encode(_DOCUMENTS)
    expected[_DOCUMENTS.index("")] = 0
    assert np.allclose(vectors, expected, atol=1e-6)
    passages = np.load(saved / "passages.npy", allow_pickle=False)
    assert passages.tolist() == [[position, 0, len(text)] for position, text in enumerate(_DOCUMENTS)]
    with (saved / "documents.jsonl").open(encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    assert documents == [{"id": i, "text": text, "metadata": {}} for i, text in enumerate(_DOCUMENTS)]
    manifest = json.loads((saved / "index.json").read_text(encoding="utf-8"))
    assert (manifest["schema_version"], manifest["documents"], manifest["dimension"]) == (5, len(_DOCUMENTS), 8)
    assert manifest["encoder"] == {"name": "tiny", "fingerprint": encoder.bundle.fingerprint, "space": None}


@pytest.mark.parametrize(
    ("version", "remedy"), [(1, "build the index again"), (4, "build the index again"), (6, "upgrade")]
)
def test_other_schema_versions_raise_with_a_remedy(saved: Path, encoder: Encoder, version: int, remedy: str) -> None:
    _change_manifest(saved, {"schema_version": version})
    with pytest.raises(InputError, match=f"has schema version {version}, expected 5; {remedy}") as caught:
        Index.open(saved, encoder)
    assert "\n" not in str(caught.value)
    Index.build(encoder, ["cat"]).save(saved, force=True)
    assert len(Index.open(saved, encoder)) == 1


def test_vectors_are_memory_mapped(saved: Path, encoder: Encoder) -> None:
    assert not Index.open(saved, encoder)._collection.rows.vectors.rows.flags.writeable


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "binary"])
@pytest.mark.parametrize("engine", ["numpy", "faiss-ivf", "faiss-hnsw"])
def test_every_precision_and_engine_returns_the_same_hits_for_few_documents(
    precision: IndexPrecision, engine: EngineName, encoder: Encoder, tmp_path: Path
) -> None:
    if engine != "numpy":
        pytest.importorskip("faiss")
        if precision == "binary":
            pytest.skip("signs are searched by numpy alone")
    index = Index.build(encoder, _DOCUMENTS, precision=precision, engine=engine)
    assert [hit.id for hit in index.search("read the file", top_k=2)] == [1, 5]
    assert index.search("read the file", top_k=2)[0].score == pytest.approx(1, abs=0.01)
    assert index.search("read the file", top_k=2)[0].score == index.search("read the file", top_k=2)[1].score
    index.remove([1])
    assert index.add(["read the file", "cat"]) == [6, 7]
    assert [hit.id for hit in index.search("read the file", top_k=2)] == [5, 6]
    index.save(tmp_path / "index")
    for chosen in (None, Engine()):
        opened = Index.open(tmp_path / "index", encoder, engine=chosen)
        assert [hit.id for hit in opened.search("read the file", top_k=2)] == [5, 6]
        assert opened.search("the dog", top_k=100) == index.search("the dog", top_k=None)
        assert opened.add(["more"]) == [8]
        opened.remove([8, 5])
        assert [hit.id for hit in opened.search("read the file", top_k=1)] == [6]


@pytest.mark.parametrize("query", ["", " \t\n"])
def test_blank_query_raises(encoder: Encoder, query: str) -> None:
    index = Index.build(encoder, ["", *_DOCUMENTS])
    with pytest.raises(InputError, match="the query is blank, expected a text"):
        index.search(query)
    assert {hit.id: hit.score for hit in index.search("cat", top_k=None)}[0] == -1


def test_ids_are_never_reused(encoder: Encoder, tmp_path: Path) -> None:
    index = Index.build(encoder, ["cat", "dog"])
    index.remove([1, 1])
    assert index.add(["file", "line"]) == [2, 3]
    index.remove([3])
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", encoder)
    assert opened.add(["socket"]) == [4]
    assert {hit.id: hit.text for hit in opened.search("a")} == {0: "cat", 2: "file", 4: "socket"}
    opened.remove([0, 2, 4])
    assert len(opened) == 0
    assert opened.search("cat") == []
    assert opened.add(["dog"]) == [5]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0, 6, 9, -1], "the index has no document with the id -1, 6, 9, expected"),
        (range(100), "the index has no document with the id 6, 7, 8, 9, 10 and more"),
        ([10**30], "1000000000000000000000000000000 is not a document id, expected an integer of at most 64 bits"),
        ([0, True], "True is not a document id"),
        ([0, 1.0], "1.0 is not a document id, expected an integer"),
        ("01", "the ids are str"),
        (1, "the ids are int, expected a list"),
    ],
)
def test_removal_with_an_invalid_id_removes_nothing(encoder: Encoder, ids: Any, message: str) -> None:
    index = Index.build(encoder, _DOCUMENTS)
    with pytest.raises(InputError, match=message):
        index.remove(ids)
    assert len(index) == len(_DOCUMENTS)


@pytest.mark.parametrize(
    ("documents", "vectors", "message"),
    [
        (["a", None], None, "document 1 is NoneType"),
        (["a", "b"], np.ones((1, 8)), r"the embeddings have shape \(1, 8\), expected \(2, 8\)"),
        (["a", "b"], np.array([[1.0] * 8, [np.inf] * 8]), "embedding 1 contains NaN or infinity"),
        (["a", "\ud800"], np.ones((2, 8)), "document 1 contains a lone surrogate"),
    ],
)
def test_addition_with_an_invalid_document_adds_nothing(
    encoder: Encoder, documents: list[str], vectors: Any, message: str
) -> None:
    index = Index.build(encoder, _DOCUMENTS)
    with pytest.raises(InputError, match=message):
        index.add(documents, embeddings=vectors)
    with pytest.raises(InputError, match=message):
        Index.build(encoder, documents, embeddings=vectors)
    assert len(index) == len(_DOCUMENTS)
    assert index.add(["cat"]) == [len(_DOCUMENTS)]


@pytest.mark.parametrize(
    ("engine", "precision"), [("faiss-ivf", "float32"), ("faiss-hnsw", "float32"), ("numpy", "binary")]
)
def test_parallel_searches_are_exact_while_documents_are_added_and_removed(
    encoder: Encoder, engine: EngineName, precision: IndexPrecision
) -> None:
    if engine != "numpy":
        pytest.importorskip("faiss")
    vectors = np.random.default_rng(0).standard_normal((300, 8))
    chosen = Engine(engine, nlist=10, nprobe=10)
    texts = [str(i) for i in range(300)]
    index = Index.build(encoder, texts, embeddings=vectors, engine=chosen, precision=precision)
    expected = [index.search(vector, top_k=1) for vector in vectors]

    def search(start: int) -> None:
        for i in range(start, 300, 4):
            assert index.search(vectors[i], top_k=1) == expected[i]

    def change() -> None:
        for _ in range(10):
            index.remove(index.add(["added"] * 20, embeddings=-100 * np.ones((20, 8))))

    with ThreadPoolExecutor(5) as pool:
        tasks = [pool.submit(change), *(pool.submit(search, start) for start in range(4))]
        for task in tasks:
            task.result()
    assert len(index) == 300


def test_threads_search_side_by_side(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.build(encoder, [str(i) for i in range(300)], precision="binary", embeddings=np.eye(300, 8) + 0.1)
    search: Any = type(index._collection._content.search)
    candidates, both = search.candidates, threading.Barrier(2, timeout=30)

    def wait_for_the_other(self: Any, *given: Any) -> Any:
        both.wait()  # raises BrokenBarrierError if the other thread never gets here
        return candidates(self, *given)

    monkeypatch.setattr(search, "candidates", wait_for_the_other)
    with ThreadPoolExecutor(2) as pool:
        hits = list(pool.map(lambda _: index.search(np.ones(8), top_k=1), range(2)))
    assert hits[0] == hits[1]


def test_threads_can_share_an_index(encoder: Encoder) -> None:
    index = Index.build(encoder, ["read the file"] * 50)

    def change(thread: int) -> None:
        for _ in range(20):
            index.remove(index.add([f"cat {thread}"] * 3))
            hits = index.search("read the file", top_k=50)
            assert [hit.id for hit in hits] == list(range(50))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(4)))
    assert len(index) == 50


def test_interrupted_addition_adds_nothing(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.build(encoder, _DOCUMENTS, precision="binary")
    expected = index.search("cat", top_k=100)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("edgeembed_runtime.index.rows.IndexRows", interrupted)
        with pytest.raises(KeyboardInterrupt):
            index.add(["dog"])
    assert index.search("cat", top_k=100) == expected
    assert index.add(["cat"]) == [6]
    assert index.search("cat", top_k=1)[0].text == "cat"


def test_changed_index_can_be_saved_over_its_folder(saved: Path, encoder: Encoder) -> None:
    opened = Index.open(saved, encoder)
    opened.add(["cat"])
    opened.remove([0])
    opened.save(saved, force=True)
    opened.add(["dog"])
    opened.save(saved, force=True)
    assert Index.open(saved, encoder).search("cat", top_k=100) == opened.search("cat", top_k=100)
    assert len(Index.open(saved, encoder)) == len(_DOCUMENTS) + 1


def test_checksums_are_compared_only_if_verify_is_set(saved: Path, encoder: Encoder) -> None:
    content = (saved / "documents.jsonl").read_bytes()
    (saved / "documents.jsonl").write_bytes(content.replace(b"socket", b"rocket"))
    assert len(Index.open(saved, encoder, verify=False)) == len(_DOCUMENTS)
    with pytest.raises(InputError, match=r"is damaged: documents\.jsonl has SHA-256"):
        Index.open(saved, encoder, verify=True)
    (saved / "documents.jsonl").write_bytes(content[:-1])
    with pytest.raises(InputError, match=r"is damaged: documents\.jsonl has \d+ bytes"):
        Index.open(saved, encoder, verify=False)


def test_unknown_precision_engine_or_encoder_raises(encoder: Encoder) -> None:
    with pytest.raises(InputError, match="the precision is 'int4', expected one of float32, float16, int8, binary"):
        Index.build(encoder, [], precision="int4")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the engine is 'annoy', expected one of numpy"):
        Index.build(encoder, [], engine="annoy")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the encoder is str, expected an Encoder"):
        Index.build("encoder", [])  # type: ignore[arg-type]


def test_index_of_faiss_opens_with_numpy_if_faiss_is_missing(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss")
    Index.build(encoder, _DOCUMENTS, engine="faiss-hnsw").save(tmp_path / "index")
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'edgeembed-runtime\[faiss\]'"):
        Index.open(tmp_path / "index", encoder)
    opened = Index.open(tmp_path / "index", encoder, engine="numpy")
    assert opened.search("read the file", top_k=1)[0].id == 1


def test_empty_index_can_be_saved_and_searched(encoder: Encoder, tmp_path: Path) -> None:
    Index.build(encoder, []).save(tmp_path / "empty")
    opened = Index.open(tmp_path / "empty", encoder)
    assert len(opened) == 0
    assert opened.search("read") == []


def test_index_of_another_encoder_raises_with_both_names(saved: Path, tmp_path: Path, make_bundle: Make) -> None:
    other = Encoder.load(make_bundle(tmp_path / "other", seed=1, name="other"))
    with pytest.raises(
        InputError, match=r"built by the encoder 'tiny' \(\w{12}\), and 'other' \(\w{12}\) is given; exp"
    ):
        Index.open(saved, other)


def test_open_raises_for_a_folder_without_index(tmp_path: Path, encoder: Encoder) -> None:
    with pytest.raises(InputError, match=r"holds no index\.json"):
        Index.open(tmp_path, encoder)


@pytest.mark.parametrize("name", ["vectors.npy", "documents.jsonl"])
def test_damaged_file_raises_with_its_name(saved: Path, encoder: Encoder, name: str) -> None:
    content = (saved / name).read_bytes()
    for damaged in (content[:-1], b"", content[:-2] + b"xx"):
        (saved / name).write_bytes(damaged)
        with pytest.raises(InputError, match=f"is damaged: {name} has"):
            Index.open(saved, encoder, verify=True)
    (saved / name).unlink()
    with pytest.raises(InputError, match=f"is damaged: {name} is missing"):
        Index.open(saved, encoder, verify=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"documents": 3}, r"documents\.jsonl has 6 lines, expected 3"),
        ({"vectors": 3}, r"vectors\.npy is float32 \(6, 8\), expected float32 \(3, 8\)"),
        ({"precision": "int8"}, r"vectors\.npy is float32 \(6, 8\), expected int8 \(6, 8\)"),
        ({"precision": "int4"}, "'precision' is \"int4\", expected one of float32"),
        ({"engine": {}}, "'engine' has no 'name'"),
        ({"next_id": 5}, "'next_id' is 5, expected an integer above all ids, at least 6"),
        ({"documents": "6"}, "'documents' is \"6\""),
        ({"files": []}, r"expected documents\.jsonl, passages\.npy, vectors\.npy, each once"),
        ({"encoder": None}, "'encoder' is null, expected a JSON object"),
    ],
)
def test_inconsistent_manifest_raises(saved: Path, encoder: Encoder, change: dict[str, Any], message: str) -> None:
    _change_manifest(saved, change)
    with pytest.raises(InputError, match=message):
        Index.open(saved, encoder)


def test_existing_folder_is_replaced_only_with_force(saved: Path, encoder: Encoder) -> None:
    with pytest.raises(InputError, match="exists already"):
        Index.build(encoder, ["cat"]).save(saved)
    assert len(Index.open(saved, encoder)) == len(_DOCUMENTS)
    Index.build(encoder, ["cat"]).save(saved, force=True)
    assert len(Index.open(saved, encoder)) == 1


def test_opened_index_can_be_saved_over_itself(saved: Path, encoder: Encoder) -> None:
    Index.open(saved, encoder).save(saved, force=True)
    assert len(Index.open(saved, encoder)) == len(_DOCUMENTS)


def test_force_never_replaces_another_folder(encoder: Encoder, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letters.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(InputError, match=r"holds no index\.json but letters\.txt, so it is not replaced"):
        Index.build(encoder, ["cat"]).save(tmp_path / "home", force=True)
    assert (tmp_path / "home" / "letters.txt").exists()


def test_full_disk_leaves_no_files_behind(encoder: Encoder, tmp_path: Path) -> None:
    index = Index.build(encoder, ["cat"] * 1000)
    with pytest.raises(InputError, match=r"cannot write .*index: .*make room"), small_files():
        index.save(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


def test_full_disk_keeps_the_existing_index(saved: Path, encoder: Encoder) -> None:
    index = Index.build(encoder, ["cat"] * 1000)
    with pytest.raises(InputError, match="cannot write"), small_files():
        index.save(saved, force=True)
    assert len(Index.open(saved, encoder)) == len(_DOCUMENTS)
    assert [path.name for path in saved.parent.iterdir()] == ["index"]


@pytest.mark.parametrize("k", [0, -3, True])
def test_top_k_below_one_raises(encoder: Encoder, k: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        Index.build(encoder, []).search("cat", top_k=k)


@pytest.mark.parametrize("engine", ["numpy", "faiss-ivf", "faiss-hnsw"])
@pytest.mark.parametrize("already", [0, 20])
def test_addition_that_fails_in_the_candidate_search_adds_nothing(
    encoder: Encoder, engine: EngineName, already: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine != "numpy":
        pytest.importorskip("faiss")
    vectors = np.random.default_rng(0).standard_normal((60, 8))
    precision: IndexPrecision = "binary" if engine == "numpy" else "float32"
    texts = [str(i) for i in range(already)]
    index = Index.build(encoder, texts, embeddings=vectors[:already], engine=engine, precision=precision)
    search: Any = type(index._collection._content.search)
    update = search.update

    def update_and_fail(self: Any, stored: Any) -> None:
        update(self, stored)
        if len(stored) > already:
            raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(search, "update", update_and_fail)
        with pytest.raises(MemoryError):
            index.add(["lost"] * 10, embeddings=vectors[50:])
    assert len(index) == already
    assert len(index.search(vectors[0], top_k=None)) == already
    assert index.add(["kept"] * 30, embeddings=vectors[20:50]) == list(range(already, already + 30))
    for place in range(20, 50):
        assert index.search(vectors[place], top_k=1)[0].id == already + place - 20


@pytest.mark.parametrize("path", [None, 3, b"index"])
def test_path_of_another_type_raises(encoder: Encoder, path: Any) -> None:
    for use in (Index.build(encoder, []).save, lambda path: Index.open(path, encoder)):
        with pytest.raises(
            InputError, match=r"^the path is \w+, expected the path of an index's folder as a str or Path$"
        ):
            use(path)


@pytest.mark.parametrize("path", [".", "./", "/", "index/.."])
def test_path_without_a_name_raises(
    encoder: Encoder, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Index.build(encoder, []).save("index")
    uses: list[Callable[[], object]] = [
        lambda: Index.build(encoder, []).save(path),
        lambda: Index.build(encoder, []).save(path, force=True),
        lambda: Index.append_to(path, ["the cat"], encoder),
    ]
    for use in uses:
        with pytest.raises(InputError, match=r"expected one that ends with a name; write the folder's name$"):
            use()
    assert [each.name for each in tmp_path.iterdir()] == ["index"]


def test_repr_says_what_an_index_holds(encoder: Encoder) -> None:
    assert (
        repr(Index.build(encoder, ["a", "b"], precision="int8"))
        == "<Index: documents=2, dimension=8, precision=int8, engine=numpy>"
    )


def test_empty_path_raises(encoder: Encoder) -> None:
    for use in (Index.build(encoder, []).save, lambda path: Index.open(path, encoder)):
        with pytest.raises(InputError, match="the path is empty, expected the path of an index's folder"):
            use("")


@pytest.mark.parametrize("path", ["a\0b", "a" * 300, "b/" * 5000])
def test_path_that_the_system_rejects_raises(
    encoder: Encoder, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="cannot write") as caught:
        Index.build(encoder, []).save(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"holds no index\.json"):
        Index.open(path, encoder)


def _other_index(encoder: Encoder) -> Index:
    return Index.build(encoder, [document + " too" for document in reversed(_DOCUMENTS)])


def _save_anew(index: Index, path: Path) -> None:
    """Save an index, even if the folder was changed since the index was last saved there."""
    rows = index._collection.rows
    Index.build(index._encoder, rows.table.texts(), embeddings=rows.vectors.rows).save(path, force=True)


@pytest.mark.parametrize("verify", [True, False])
def test_open_retries_if_the_index_is_replaced_meanwhile(
    saved: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch, *, verify: bool
) -> None:
    other = _other_index(encoder)
    read = folder_module._read_documents
    calls: list[None] = []

    def read_and_replace(*given: Any) -> Any:
        documents = read(*given)
        if not calls:
            other.save(saved, force=True)
        calls.append(None)
        return documents

    monkeypatch.setattr(folder_module, "_read_documents", read_and_replace)
    opened = Index.open(saved, encoder, verify=verify)
    assert opened.search("cat", top_k=None) == other.search("cat", top_k=None)
    assert len(calls) == 2


def test_open_raises_if_the_index_is_replaced_repeatedly(
    saved: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, read = _other_index(encoder), folder_module._read_documents

    def read_and_replace(*given: Any) -> Any:
        _save_anew(other, saved)
        return read(*given)

    monkeypatch.setattr(folder_module, "_read_documents", read_and_replace)
    monkeypatch.setattr(folder_module, "_MAX_ATTEMPTS", 3)
    with pytest.raises(InputError, match="was replaced 3 times while it was read; open it once it stays the same"):
        Index.open(saved, encoder)


@_EXCHANGES
def test_reader_sees_the_old_or_the_new_index_during_replacement(saved: Path, encoder: Encoder) -> None:
    indexes = [Index.build(encoder, _DOCUMENTS), _other_index(encoder)]
    whole = [index.search("cat", top_k=None) for index in indexes]

    def write() -> None:
        for turn in range(60):  # fewer than a reader makes attempts
            _save_anew(indexes[turn % 2], saved)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not writing.done():
            assert Index.open(saved, encoder).search("cat", top_k=None) in whole
        writing.result()


def _save_for_ever(path: Path, indexes: list[Index]) -> None:
    while True:
        for index in indexes:
            _save_anew(index, path)


def _killed_saves(path: Path, encoder: Encoder, kills: int) -> None:
    indexes = [Index.build(encoder, _DOCUMENTS), _other_index(encoder)]
    whole = [index.search("cat", top_k=None) for index in indexes]
    random = np.random.default_rng(0)
    for _ in range(kills):
        with warnings.catch_warnings():  # from Python 3.12 on it warns of threads
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                _save_for_ever(path, indexes)
            finally:
                os._exit(1)
        time.sleep(random.uniform(0.01, 0.05))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert Index.open(path, encoder).search("cat", top_k=None) in whole
    _save_anew(indexes[0], path)
    assert Index.open(path, encoder).search("cat", top_k=None) == whole[0]
    assert os.listdir(path.parent) == ["index"]  # noqa: PTH208 - files of killed processes were removed


@_EXCHANGES
def test_killed_save_leaves_the_old_or_the_new_index(saved: Path, encoder: Encoder) -> None:
    _killed_saves(saved, encoder, 25)


@_EXCHANGES
@pytest.mark.slow
def test_hundreds_of_killed_saves_leave_the_old_or_the_new_index(saved: Path, encoder: Encoder) -> None:
    _killed_saves(saved, encoder, 500)


def test_save_raises_if_another_index_changed_the_folder(saved: Path, encoder: Encoder) -> None:
    first, second = Index.open(saved, encoder), Index.open(saved, encoder)
    first.add(["cat"])
    first.save(saved, force=True)
    second.add(["dog"])
    with pytest.raises(InputError, match="was changed since this index was opened or saved, expected no change; open"):
        second.save(saved, force=True)
    first.add(["socket"])
    first.save(saved, force=True)
    assert [hit.text for hit in Index.open(saved, encoder).search("cat", top_k=None)].count("cat") == 1
    assert len(Index.open(saved, encoder)) == len(_DOCUMENTS) + 2
    second.save(saved.parent / "other")
    assert len(Index.open(saved.parent / "other", encoder)) == len(_DOCUMENTS) + 1


def test_saving_elsewhere_forgets_no_folder(saved: Path, encoder: Encoder, tmp_path: Path) -> None:
    index, elsewhere = Index.open(saved, encoder), tmp_path / "elsewhere"
    index.save(elsewhere)
    other = Index.open(saved, encoder)
    other.add(["written by another process"])
    other.save(saved, force=True)
    index.add(["mine"])
    for copied in (index, pickle.loads(pickle.dumps(index))):  # noqa: S301
        with pytest.raises(InputError, match="was changed since this index was opened or saved"):
            copied.save(saved, force=True)
    assert [document.text for document in Index.open(saved, encoder)][-1] == "written by another process"
    index.save(elsewhere, force=True)
    index.save(elsewhere, force=True)
    assert [document.text for document in Index.open(elsewhere, encoder)][-1] == "mine"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_private_index_stays_private(saved: Path, encoder: Encoder) -> None:
    saved.chmod(0o700)
    for file in saved.iterdir():
        file.chmod(0o600)
    Index.append_to(saved, ["cat"], encoder).save(saved, force=True)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in saved.iterdir()} == {0o600}


def test_append_to_a_folder_that_is_removed_meanwhile_raises(
    saved: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(*arguments: Any, **options: Any) -> Any:
        shutil.rmtree(saved, ignore_errors=True)
        return encode(*arguments, **options)

    encode = Index._encode
    monkeypatch.setattr(Index, "_encode", remove)
    with pytest.raises(InputError, match="expected an index"):
        Index.append_to(saved, ["cat"], encoder)
    assert not saved.exists()


def test_ids_stay_unique_if_a_lookup_happens_during_an_addition() -> None:
    class LookedUpMeanwhile(DocumentTable):
        """A table of which another thread asks for an id after the first access to its positions."""

        reads = 0

        @property
        def _positions(self) -> dict[DocumentId, int] | None:
            self.reads += 1
            return None if self.reads == 1 else {"x": 0, "y": 1}

        @_positions.setter
        def _positions(self, value: dict[DocumentId, int] | None) -> None:
            pass

    table = LookedUpMeanwhile(["one", "two"], ["x", "y"], [{}, {}], 0)
    appended = table.append(DocumentBatch(["three"], None, None))
    assert [appended.position(each) for each in ("x", "y", 0)] == [0, 1, 2]
    with pytest.raises(InputError, match="has a document with the id 0 already"):
        appended.append(DocumentBatch(["four"], [0], None))


def test_second_save_of_a_built_index_raises_if_the_folder_was_changed(encoder: Encoder, tmp_path: Path) -> None:
    built = Index.build(encoder, ["cat"])
    built.save(tmp_path / "index")
    Index.append_to(tmp_path / "index", ["dog"], encoder)
    with pytest.raises(InputError, match="was changed since"):
        built.save(tmp_path / "index", force=True)
    shutil.rmtree(tmp_path / "index")
    built.save(tmp_path / "index")
    assert len(Index.open(tmp_path / "index", encoder)) == 1


def test_parallel_append_to_keeps_the_documents_of_all_threads(saved: Path, encoder: Encoder) -> None:
    texts = [[f"cat {thread}", f"dog {thread}"] for thread in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda documents: Index.append_to(saved, documents, encoder), texts))
    stored = [hit.text for hit in Index.open(saved, encoder).search("cat", top_k=None)]
    assert sorted(stored) == sorted([*_DOCUMENTS, *(text for documents in texts for text in documents)])
    assert [path.name for path in saved.parent.iterdir()] == ["index"]


def test_append_to_follows_a_link_to_an_index(saved: Path, encoder: Encoder) -> None:
    link = saved.parent / "link"
    link.symlink_to(saved)
    assert len(Index.append_to(link, ["cat"], encoder)) == len(_DOCUMENTS) + 1
    assert link.is_symlink()
    assert len(Index.open(saved, encoder)) == len(_DOCUMENTS) + 1


def test_append_to_raises_if_there_is_no_index(encoder: Encoder, tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path / "absent" / "too"):
        with pytest.raises(InputError, match=r"holds no index\.json"):
            Index.append_to(path, ["cat"], encoder)
    assert list(tmp_path.iterdir()) == []


def test_force_never_replaces_an_index_beside_other_files(saved: Path, encoder: Encoder) -> None:
    (saved / "app.js").write_text("let x", encoding="utf-8")
    message = r"holds app\.js, which its index\.json does not list, so it is not replaced"
    for save in (Index.build(encoder, ["cat"]).save, Index.open(saved, encoder).save):
        with pytest.raises(InputError, match=message):
            save(saved, force=True)
    with pytest.raises(InputError, match=message):
        Index.append_to(saved, ["cat"], encoder)
    assert (saved / "app.js").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows does not cut mapped files")
@pytest.mark.parametrize(("precision", "name"), [("float32", "vectors.npy"), ("binary", "signs.npy")])
def test_truncated_mapped_file_raises_in_one_line(
    encoder: Encoder, tmp_path: Path, precision: IndexPrecision, name: str
) -> None:
    path = tmp_path / "index"
    Index.build(encoder, _DOCUMENTS, precision=precision).save(path)
    opened, changed = Index.open(path, encoder), Index.open(path, encoder)
    changed.add(["cat"])  # which reads what was mapped into memory
    os.truncate(path / name, 10)
    uses: list[Callable[[], object]] = [
        lambda: opened.search("cat"),
        lambda: opened.search("cat", top_k=None),
        lambda: opened.add(["dog"]),
        lambda: opened.remove([0]),
        lambda: opened.save(tmp_path / "other"),
    ]
    for use in uses:
        message = rf"{name} was truncated to 10 bytes while it was open, expected \d+; build the index again$"
        with pytest.raises(InputError, match=message):
            use()
    assert changed.search("cat", top_k=1)[0].text == "cat"
    with pytest.raises(InputError, match="is damaged"):
        Index.open(path, encoder, verify=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [('"documents": 6', '"documents": 5'), ('"precision": "float32"', '"precision": "int8"'), ('"tiny"', '"x"')],
)
@pytest.mark.parametrize("verify", [True, False])
def test_changed_manifest_raises(saved: Path, encoder: Encoder, old: str, new: str, *, verify: bool) -> None:
    content = (saved / "index.json").read_text(encoding="utf-8")
    assert old in content
    (saved / "index.json").write_text(content.replace(old, new), encoding="utf-8")
    message = r'index\.json is damaged: its fields have SHA-256 "\w{64}", expected "\w{64}"; make it again$'
    with pytest.raises(InputError, match=message):
        Index.open(saved, encoder, verify=verify)
