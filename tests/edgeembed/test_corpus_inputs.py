"""What the public functions accept as a corpus."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict
from edgeembed_runtime.errors import InputError

from edgeembed.corpus.inputs import corpus_paths, iter_texts, open_corpus
from edgeembed.corpus.languages import label_languages

TEXTS = ["The cat sleeps near the river.", "A train runs under the bridge.", "Cats"]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    file = tmp_path / "my notes.txt"
    file.write_text("\n".join(TEXTS), encoding="utf-8")
    return file


@pytest.mark.parametrize("as_type", [str, Path])
def test_a_string_or_path_is_one_source(notes: Path, as_type: type) -> None:
    assert list(iter_texts(as_type(notes))) == TEXTS
    assert list(iter_texts(as_type(notes.parent))) == TEXTS
    assert list(iter_texts([as_type(notes), notes])) == TEXTS * 2


def test_a_list_of_texts_is_read_as_it_is() -> None:
    assert list(iter_texts(TEXTS)) == TEXTS
    assert list(iter_texts(tuple(TEXTS))) == TEXTS
    assert [source.name for source in open_corpus(TEXTS)] == ["the given list"]


def test_texts_may_be_longer_than_a_path_and_hold_any_character() -> None:
    texts = ["x" * 10_000 + " y", "zero \0 byte", "C# or F#?", "", "key=value"]
    assert list(iter_texts(texts)) == texts


def test_columns_of_a_table_are_chosen_after_a_hash(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\n1\t2\n", encoding="utf-8")
    assert list(iter_texts(f"{tmp_path / 'a.tsv'}#y")) == ["2"]


def test_standard_input_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one two\n")))
    assert list(iter_texts("-")) == ["one two"]


@pytest.mark.parametrize(
    "columns",
    [
        {"text": TEXTS},
        {"body": TEXTS, "label": [0, 1, 2]},
        {"title": ["a", "b", "c"], "text": TEXTS},
        {"title": ["a", "b", "c"], "sentence": TEXTS},
    ],
)
def test_a_dataset_gives_its_text_column(columns: dict[str, Any]) -> None:
    dataset = Dataset.from_dict(columns)
    assert list(iter_texts(dataset)) == TEXTS
    assert list(iter_texts(dataset.with_format("numpy"))) == TEXTS


def test_missing_texts_of_a_dataset_are_skipped() -> None:
    assert list(iter_texts(Dataset.from_dict({"text": ["a b", None, "c"]}))) == ["a b", "c"]


def test_a_dataset_with_several_text_columns_is_an_error() -> None:
    with pytest.raises(InputError, match="columns question, answer, 2 of them with text; expected one text column"):
        open_corpus(Dataset.from_dict({"question": ["a"], "answer": ["b"]}))


def test_a_missing_source_among_sources_is_reported(notes: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.txt does not exist"):
        open_corpus([notes, "absent.txt"])
    with pytest.raises(InputError, match=r"the corpus holds the source .*my notes\.txt and 'a text', which does not"):
        open_corpus([str(notes), "a text"])


@pytest.mark.parametrize("word", ["-", "https://example.org/page", "s3://bucket/notes.txt", "zip://a.txt::b.zip"])
def test_a_text_among_texts_may_look_like_a_url_or_standard_input(word: str) -> None:
    texts = ["a first text", word, "see notes.txt for more", "x"]
    assert list(iter_texts(texts)) == texts
    assert label_languages(texts) == {}


def test_a_url_among_names_of_files_is_a_source() -> None:
    with pytest.raises(InputError, match=r"the source s3://bucket/a.txt and 'my notes.txt', which does not exist"):
        open_corpus(["s3://bucket/a.txt", "my notes.txt"])


def test_a_path_is_never_a_text() -> None:
    with pytest.raises(InputError, match="not here does not exist"):
        open_corpus([Path("not here")])


def test_words_without_white_space_are_missing_sources() -> None:
    with pytest.raises(InputError, match=r"'cat' does not exist; .* other texts go into a datasets\.Dataset"):
        open_corpus(["cat", "dog"])


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (None, "corpus is None; expected a file, a folder"),
        (b"a text", "corpus is b'a text'; expected a file"),
        ([], "no corpus was given"),
        ((text for text in TEXTS), "corpus is <generator"),
        (["a text", 3], "item 2 of the corpus is 3; expected a text, or a source"),
        (["a text \ud800"], "item 1 of the corpus holds a lone surrogate"),
        ({"text": TEXTS}, "corpus is {'text'"),
        (DatasetDict({"train": Dataset.from_dict({"text": TEXTS})}), r"corpus is DatasetDict.*expected .*Dataset"),
    ],
)
def test_other_objects_are_an_error_before_any_text_is_read(corpus: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        iter_texts(corpus)


def test_the_paths_of_a_corpus_are_the_files_it_is_read_from(notes: Path) -> None:
    assert corpus_paths(notes) == corpus_paths(notes.parent) == [notes]
    assert corpus_paths([f"{notes}#text", "-", "pydoc:json"]) == [notes]
    assert corpus_paths(TEXTS) == []
    assert corpus_paths(Dataset.from_dict({"text": TEXTS})) == []
