"""Corpora behind URLs: fsspec's file systems in memory, on the disk and inside a zip."""

import gzip
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from edgeembed_runtime.errors import InputError

import edgeembed
from edgeembed.corpus import corpus_paths, iter_texts, label_languages, open_corpus
from edgeembed.corpus.pairs import pair_paths, read_pairs
from edgeembed.embeddings.store import EmbeddingStore


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    """An object store in memory with a folder `corpus`."""
    system = fsspec.filesystem("memory")
    system.pipe(
        {
            "/corpus/a.txt": b"one\ntwo\n",
            "/corpus/deep/b.txt.gz": gzip.compress(b"three\n"),
            "/corpus/c.tsv": b"id\ttext\n1\tfour\n",
            "/corpus/notes.md": b"no corpus file",
        }
    )
    with system.open("/corpus/d.parquet", "wb") as file:
        pq.write_table(pa.table({"text": ["five"], "other": ["six"]}), file)
    yield system
    system.rm("/corpus", recursive=True)


@pytest.mark.parametrize(
    ("corpus", "expected"),
    [
        ("memory://corpus", ["one", "two", "four", "five", "three"]),
        ("memory://corpus/a.txt", ["one", "two"]),
        ("memory://corpus/deep/b.txt.gz", ["three"]),
        ("memory://corpus/d.parquet#other", ["six"]),
        (["memory://corpus/c.tsv", "memory://corpus/a.txt"], ["four", "one", "two"]),
    ],
)
@pytest.mark.usefixtures("memory")
def test_texts_behind_urls(corpus: str | list[str], expected: list[str]) -> None:
    assert list(iter_texts(corpus)) == expected
    assert corpus_paths(corpus) == []


def test_urls_of_the_disk_and_of_a_zip(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    with zipfile.ZipFile(tmp_path / "corpus.zip", "w") as archive:
        archive.writestr("in/b.txt", "two\n")
    url = tmp_path.as_uri()
    assert list(iter_texts(f"{url}/a.txt")) == ["one"]
    assert list(iter_texts(f"zip://in::{url}/corpus.zip")) == ["two"]


@pytest.mark.usefixtures("memory")
def test_urls_may_have_languages_and_columns() -> None:
    corpora = label_languages(["de=memory://corpus/a.txt", "en=memory://corpus/d.parquet#other"])
    assert {language: list(iter_texts(corpus)) for language, corpus in corpora.items()} == {
        "de": ["one", "two"],
        "en": ["six"],
    }


def test_labeled_pairs_behind_a_url(memory: fsspec.AbstractFileSystem) -> None:
    memory.pipe("/corpus/pairs.TSV", b"a\tb\tc\n1\tone\tuno\n2\ttwo\tdue\n")
    url = "memory://corpus/pairs.TSV#b,c"
    assert read_pairs(url) == {"anchor": ["one", "two"], "positive": ["uno", "due"]}
    assert pair_paths(url) == []
    with pytest.raises(InputError, match=r"memory://corpus/none.tsv#b,c is not a file"):
        read_pairs("memory://corpus/none.tsv#b,c")


def test_a_text_that_begins_with_a_url_is_a_text() -> None:
    texts = ["https://example.org is a page", "nothing else"]
    assert list(iter_texts(texts)) == texts


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://corpus/missing.txt", r"memory://corpus/missing.txt does not exist; expected a corpus file"),
        ("memory://corpus/notes.md", r"memory://corpus/notes.md has an unknown ending; expected \.txt"),
        ("nothing://corpus/a.txt", r"nothing://corpus/a.txt cannot be read: ValueError: Protocol not known: nothing"),
    ],
)
def test_a_wrong_url_is_one_clear_error(url: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_corpus(url)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(InputError, match=r"s3://bucket/a.txt needs a package that is not installed: Install s3fs"):
        open_corpus("s3://bucket/a.txt")


def test_a_fault_while_reading_names_the_file(
    memory: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = open_corpus("memory://corpus/a.txt")

    def fail(*_arguments: object, **_settings: object) -> None:
        raise RuntimeError("the token has expired")

    monkeypatch.setattr(type(memory), "open", fail)
    with pytest.raises(InputError, match=r"memory://corpus/a.txt cannot be read: RuntimeError: the token has expired"):
        list(source.texts())


@pytest.mark.usefixtures("memory")
def test_encode_reads_urls(tmp_path: Path) -> None:
    report = edgeembed.encode("memory://corpus", "nano", tmp_path / "shards")
    assert list(EmbeddingStore.open(report.path).texts()) == ["one", "two", "four", "five", "three"]


def test_the_command_takes_urls(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    words = ["encode", f"{tmp_path.as_uri()}/a.txt", "--model", "nano", "--out", str(tmp_path / "shards"), "--json"]
    done = subprocess.run([sys.executable, "-m", "edgeembed.cli.main", *words], check=True, capture_output=True)
    assert b'"texts": 2' in done.stdout
