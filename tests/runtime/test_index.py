"""Indexes: their round trip, what is refused, and nothing half-written."""

import contextlib
import json
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Index, InputError, RelevanceRanker

Make = Callable[..., Path]

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


@contextlib.contextmanager
def small_files() -> Iterator[None]:
    """Let no file grow beyond 4 kB, as if the disk were full; short, because it holds for the tests' own log too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_saved_index_finds_what_the_built_one_finds(saved: Path, encoder: Encoder) -> None:
    built, opened = Index.build(encoder, _DOCUMENTS), Index.open(str(saved), encoder)
    assert len(opened) == len(built) == len(_DOCUMENTS)
    assert opened.search("read a file", k=4) == built.search("read a file", k=4)
    assert opened.search("read a file", k=100) == RelevanceRanker(encoder).rank("read a file", _DOCUMENTS)
    assert [hit.index for hit in opened.search("read the file", k=2)] == [1, 5]


def test_the_folder_holds_open_formats(saved: Path, encoder: Encoder) -> None:
    vectors = np.load(saved / "vectors.npy", allow_pickle=False)
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, encoder.encode(_DOCUMENTS))
    with (saved / "documents.jsonl").open(encoding="utf-8") as file:
        assert [json.loads(line) for line in file] == _DOCUMENTS
    manifest = json.loads((saved / "index.json").read_text(encoding="utf-8"))
    assert (manifest["schema_version"], manifest["count"], manifest["dimension"]) == (1, len(_DOCUMENTS), 8)
    assert manifest["encoder"] == {"name": "tiny", "fingerprint": encoder.bundle.fingerprint}


def test_vectors_are_mapped_and_not_read(saved: Path, encoder: Encoder) -> None:
    assert isinstance(Index.open(saved, encoder)._vectors, np.memmap)


def test_an_index_of_nothing_is_one(encoder: Encoder, tmp_path: Path) -> None:
    Index.build(encoder, []).save(tmp_path / "empty")
    opened = Index.open(tmp_path / "empty", encoder)
    assert len(opened) == 0
    assert opened.search("read") == []


def test_another_encoder_is_refused_by_name(saved: Path, tmp_path: Path, make_bundle: Make) -> None:
    other = Encoder.load(make_bundle(tmp_path / "other", seed=1, name="other"))
    with pytest.raises(InputError, match=r"built by the encoder 'tiny' \(\w{12}\), expected 'other' \(\w{12}\)"):
        Index.open(saved, other)


def test_a_folder_that_is_no_index_is_refused(tmp_path: Path, encoder: Encoder) -> None:
    with pytest.raises(InputError, match=r"holds no index\.json"):
        Index.open(tmp_path, encoder)


@pytest.mark.parametrize("name", ["vectors.npy", "documents.jsonl"])
def test_a_damaged_file_is_named(saved: Path, encoder: Encoder, name: str) -> None:
    content = (saved / name).read_bytes()
    for damaged in (content[:-1], b"", content[:-2] + b"xx"):
        (saved / name).write_bytes(damaged)
        with pytest.raises(InputError, match=f"is damaged: {name} has"):
            Index.open(saved, encoder)
    (saved / name).unlink()
    with pytest.raises(InputError, match=f"is damaged: {name} is missing"):
        Index.open(saved, encoder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 2}, "schema version 2, expected 1"),
        ({"count": 3}, r"vectors\.npy is float32 \(6, 8\), expected float32 \(3, 8\)"),
        ({"count": "6"}, "'count' is \"6\""),
        ({"files": []}, "expected vectors.npy and documents.jsonl"),
        ({"encoder": None}, "'encoder' is null, expected a JSON object"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused(
    saved: Path, encoder: Encoder, change: dict[str, Any], message: str
) -> None:
    manifest = json.loads((saved / "index.json").read_text(encoding="utf-8"))
    (saved / "index.json").write_text(json.dumps({**manifest, **change}), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Index.open(saved, encoder)


def test_an_existing_folder_is_kept_unless_forced(saved: Path, encoder: Encoder) -> None:
    with pytest.raises(InputError, match="exists already"):
        Index.build(encoder, ["cat"]).save(saved)
    assert len(Index.open(saved, encoder)) == len(_DOCUMENTS)
    Index.build(encoder, ["cat"]).save(saved, force=True)
    assert len(Index.open(saved, encoder)) == 1


def test_an_opened_index_can_replace_itself(saved: Path, encoder: Encoder) -> None:
    Index.open(saved, encoder).save(saved, force=True)
    assert len(Index.open(saved, encoder)) == len(_DOCUMENTS)


def test_force_never_replaces_what_is_no_index(encoder: Encoder, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letters.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(InputError, match=r"holds no index\.json, so it is not replaced"):
        Index.build(encoder, ["cat"]).save(tmp_path / "home", force=True)
    assert (tmp_path / "home" / "letters.txt").exists()


def test_a_full_disk_leaves_nothing_behind(encoder: Encoder, tmp_path: Path) -> None:
    index = Index.build(encoder, ["cat"] * 1000)
    with pytest.raises(InputError, match=r"cannot write .*index: .*make room"), small_files():
        index.save(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_keeps_the_index_that_is_there(saved: Path, encoder: Encoder) -> None:
    index = Index.build(encoder, ["cat"] * 1000)
    with pytest.raises(InputError, match="cannot write"), small_files():
        index.save(saved, force=True)
    assert len(Index.open(saved, encoder)) == len(_DOCUMENTS)
    assert [path.name for path in saved.parent.iterdir()] == ["index"]


@pytest.mark.parametrize("k", [0, -3, True])
def test_a_count_below_one_is_refused(encoder: Encoder, k: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        Index.build(encoder, []).search("cat", k=k)
