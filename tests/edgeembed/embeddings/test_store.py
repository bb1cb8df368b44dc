"""The store of embeddings: adding, finding, reading, damage, and several processes at once."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.store_manifest import EncodedBy

from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.embeddings.text_vectors import map_vectors

ENCODER = EncodedBy("teacher", "f" * 64, 3, True, "fp32", None, "")
TEXTS = [f"text {number}" for number in range(10)]
VECTORS = np.arange(30, dtype=np.float16).reshape(10, 3)


@pytest.fixture
def store(tmp_path: Path) -> EmbeddingStore:
    """Return a store of ten texts in shards of four, four and two."""
    store = EmbeddingStore.create(tmp_path / "store", ENCODER)
    for first in (0, 4, 8):
        store.append(TEXTS[first : first + 4], VECTORS[first : first + 4], is_complete=first == 8)
    return store


def test_vectors_are_found_by_text(store: EmbeddingStore) -> None:
    opened = EmbeddingStore.open(store.folder)
    for each in (store, opened, pickle.loads(pickle.dumps(opened))):  # noqa: S301  # our own
        assert len(each) == 10
        assert list(each.texts()) == TEXTS
        assert each.find(["text 9", "another", "text 0"]).tolist() == [9, -1, 0]
        np.testing.assert_array_equal(each.read(each.find_all(TEXTS[::-1])), VECTORS[::-1])
    with pytest.raises(InputError, match=r"store lacks 1 of 2 sentences, the first is 'another'; expected embeddings"):
        opened.find_all(["text 1", "another"])


def test_of_a_text_that_is_twice_the_first_row_is_found(store: EmbeddingStore) -> None:
    store.append(["text 3", "new"], np.full((2, 3), 7), is_complete=True)
    assert store.find(["text 3", "new"]).tolist() == [3, 11]
    assert store.read(np.array([11, 3, 11])).tolist() == [[7, 7, 7], [9, 10, 11], [7, 7, 7]]


def test_any_reader_of_parquet_and_json_opens_it(store: EmbeddingStore) -> None:
    content = json.loads((store.folder / "manifest.json").read_text())
    assert (content["schema_version"], content["dtype"], content["is_complete"]) == (1, "float16", True)
    assert content["encoder"]["fingerprint"] == "f" * 64
    table = pq.read_table(store.folder / "shards" / f"{content['shards'][2]['name']}.parquet")
    assert table.column("text").to_pylist() == TEXTS[8:]
    assert str(table.schema.field("embedding").type) == "fixed_size_list<element: halffloat>[3]"


def test_float32_is_kept_exactly(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    EmbeddingStore.create(tmp_path, ENCODER, "float32").append(["a", "b"], vectors, is_complete=True)
    read = EmbeddingStore.open(tmp_path).read(np.array([0, 1]))
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, vectors)


def test_a_file_of_some_texts_is_filled_again_at_each_call(store: EmbeddingStore, tmp_path: Path) -> None:
    mapped = map_vectors(store, TEXTS[::3], tmp_path / "vectors", reused=0)
    np.testing.assert_array_equal(mapped.vectors, VECTORS[::3])
    mapped.file.write_bytes(bytes(mapped.file.stat().st_size))
    assert map_vectors(store, TEXTS[::3], tmp_path / "vectors", reused=0) == mapped
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mapped)).vectors, VECTORS[::3])  # noqa: S301  # our own
    with pytest.raises(ValueError, match="read-only"):
        mapped.vectors[0] = 1


@pytest.mark.parametrize("change", ["damaged", "missing"])
def test_a_damaged_shard_is_refused_by_readers_and_removed_by_writers(store: EmbeddingStore, change: str) -> None:
    file = store.manifest.shards[1].file(store.folder)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if change == "damaged":
        file.write_bytes(content)
        opened = EmbeddingStore.open(store.folder)
        assert opened.read(np.array([0, 9])).tolist() == VECTORS[[0, 9]].tolist()
        with pytest.raises(InputError, match=r"00001-\w+\.parquet is missing or damaged: its SHA-256 .* encode again"):
            opened.read(np.array([0, 4]))
    else:
        file.unlink()
        with pytest.raises(InputError, match=r"store lacks 00001-\w+\.parquet; expected all shards"):
            EmbeddingStore.open(store.folder)
    mended = EmbeddingStore.create(store.folder, ENCODER)
    assert mended.find(TEXTS).tolist() == [0, 1, 2, 3, -1, -1, -1, -1, 4, 5]
    with pytest.raises(InputError, match="is incomplete"):
        EmbeddingStore.open(store.folder)
    mended.append(TEXTS[4:8], VECTORS[4:8], is_complete=True)
    np.testing.assert_array_equal(mended.read(mended.find_all(TEXTS)), VECTORS)


def test_shards_of_several_writers_are_merged(store: EmbeddingStore) -> None:
    other = EmbeddingStore.create(store.folder, ENCODER)
    store.append(["a"], np.ones((1, 3)), is_complete=True)
    other.append(["b"], np.zeros((1, 3)), is_complete=True)
    assert other.find(["a", "b", *TEXTS]).tolist() == [10, 11, *range(10)]
    assert EmbeddingStore.open(store.folder).find(["a", "b"]).tolist() == [10, 11]


_WRITER = """
import sys
from pathlib import Path
import numpy as np
from edgeembed_runtime.store_manifest import EncodedBy
from edgeembed.embeddings.store import EmbeddingStore
store = EmbeddingStore.create(Path(sys.argv[1]), EncodedBy("teacher", "f" * 64, 3, True, "fp32", None, ""))
print("ready", flush=True)
sys.stdin.readline()
for number in range(15):
    store.append([f"{sys.argv[2]} {number}"], np.full((1, 3), number), is_complete=True)
"""


def test_two_processes_lose_no_shard_of_each_other(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path / "store")]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, name], **pipes) for name in ("one", "two")]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"  # type: ignore[union-attr]
    for writer in writers:
        writer.stdin.write("\n")  # type: ignore[union-attr]
        writer.stdin.flush()  # type: ignore[union-attr]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    store = EmbeddingStore.open(tmp_path / "store")
    texts = [f"{name} {number}" for name in ("one", "two") for number in range(15)]
    assert store.read(store.find_all(texts))[:, 0].tolist() == [*range(15), *range(15)]
    assert len(store) == 30


def test_what_is_not_listed_is_not_read_and_can_be_removed(store: EmbeddingStore) -> None:
    shard = store.write_shard("9", ["unlisted"], np.ones((1, 3)))
    assert EmbeddingStore.open(store.folder).find(["unlisted"]).tolist() == [-1]
    assert store.find_shard("9", ["unlisted"]) == shard
    assert store.find_shard("9", ["another"]) is None
    shard.file(store.folder).write_bytes(b"damaged")
    assert store.find_shard("9", ["unlisted"]) is None
    store.remove_unlisted()
    assert not shard.file(store.folder).exists()
    assert len(list(EmbeddingStore.open(store.folder).texts())) == 10


def test_another_encoder_and_another_folder_are_refused(store: EmbeddingStore, tmp_path: Path) -> None:
    for other, message in (
        (
            replace(ENCODER, fingerprint="e" * 64),
            r"of another model \(fingerprint 'f+' instead of 'e+'\); choose another",
        ),
        (
            replace(ENCODER, prompt="query: ", precision="bf16"),
            r"'bf16', prompt '' instead of 'query: '\)",
        ),
    ):
        with pytest.raises(InputError, match=message):
            EmbeddingStore.create(store.folder, other)
    assert len(EmbeddingStore.create(store.folder, replace(ENCODER, name="elsewhere"))) == 10
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(InputError, match="other exists and is not a store of embeddings; choose another path"):
        EmbeddingStore.create(tmp_path / "other", ENCODER)
    with pytest.raises(InputError, match=r"other holds no manifest\.json; expected a folder that edgeembed encode"):
        EmbeddingStore.open(tmp_path / "other")


def test_a_folder_of_another_schema_is_refused(store: EmbeddingStore) -> None:
    file = store.folder / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema_version": 9}))
    with pytest.raises(InputError, match="has schema version 9, expected 1; encode the text again"):
        EmbeddingStore.open(store.folder)
