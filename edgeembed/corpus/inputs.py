"""The kinds of text that public functions accept as a corpus: sources, texts in memory, and datasets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from edgeembed_runtime.errors import InputError, short_repr

from edgeembed.corpus.remote import is_url
from edgeembed.corpus.sources import STANDARD_INPUT, Source, find_sources, is_file_name, is_source

if TYPE_CHECKING:
    import datasets

CorpusLike: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | datasets.Dataset"
"""One source, a list of sources, a list of texts, or a dataset; see `open_corpus`."""

_WHITE_SPACE = re.compile(r"\s")
_TEXT_COLUMNS = ("text", "sentence")
_TEXT_TYPES = ("string", "large_string")
_EXPECTED = (
    "expected a file, a folder, - or pydoc:, a list of them, a list of texts, or a datasets.Dataset with a text column"
)


class TextSource(Protocol):
    """A stream of texts with a name that error messages use."""

    @property
    def name(self) -> str:
        """A file's path, `-` for standard input, `pydoc:` with modules, or what the texts in memory are called."""
        ...

    def texts(self) -> Iterator[str]:
        """Yield the raw texts, one at a time."""
        ...


def open_corpus(corpus: CorpusLike) -> list[TextSource]:
    """Return the sources of a corpus, without reading their texts.

    Args:
        corpus: One of these:

            - A string or path: one source. That is a file (.txt, .tsv, .csv, .jsonl, .parquet; all but the last also
              with .xz, .gz, .zst), a folder of such files, the URL of either (`s3://bucket/folder`), `-` for standard
              input, or `pydoc:` for Python's documentation (`pydoc:stdlib` for the standard library's,
              `pydoc:json,numpy` for that of some modules).
              `#column1,column2` after a path chooses columns of its tables.
            - A list. If some item contains white space and no item is a `Path` or names an existing file, an existing
              folder or `pydoc:`, the items are the texts themselves, also `-` and URLs. Otherwise all must be sources.
            - A `datasets.Dataset`: its column `text` or `sentence`, or else its only text column.

    Returns:
        The sources in the order given; each folder is replaced by the files below it, sorted by path.

    Raises:
        InputError: If the corpus is none of these, is empty, or a source does not exist or has an unknown ending.
    """
    if isinstance(corpus, str | os.PathLike):
        return list(find_sources([_path(corpus)]))
    if is_dataset(corpus):
        return [_dataset_source(corpus)]
    if isinstance(corpus, bytes | bytearray) or not isinstance(corpus, Sequence):
        raise InputError(f"corpus is {short_repr(corpus)}; {_EXPECTED}")
    if not corpus:
        raise InputError(f"no corpus was given; {_EXPECTED}")
    for number, item in enumerate(corpus, start=1):
        if not isinstance(item, str | os.PathLike):
            raise InputError(f"item {number} of the corpus is {short_repr(item)}; expected a text, or a source")
    if not holds_texts(corpus):
        _expect_a_source(corpus)
        return list(find_sources([_path(item) for item in corpus]))
    texts = [str(item) for item in corpus]
    _expect_unicode(texts)
    return [_MemorySource("the given list", texts.__iter__)]


def iter_texts(corpus: CorpusLike) -> Iterator[str]:
    """Return an iterator over the raw texts of a corpus: neither cleaned nor deduplicated, one in memory at a time.

    `edgeembed.corpus.read_corpus` cleans, deduplicates and samples instead.

    Args:
        corpus: See `open_corpus`.

    Raises:
        InputError: At once if the corpus cannot be opened, and during iteration if a source cannot be read.
    """
    sources = open_corpus(corpus)
    return (text for source in sources for text in source.texts())


def corpus_paths(corpus: CorpusLike) -> list[Path]:
    """Return the local files that a corpus is read from, so that no output replaces one of them.

    Args:
        corpus: See `open_corpus`.

    Raises:
        InputError: If the corpus cannot be opened.
    """
    paths = (source.path for source in open_corpus(corpus) if isinstance(source, Source) and source.is_file)
    return [path for path in paths if isinstance(path, Path)]


def holds_texts(items: Sequence[str | os.PathLike[str]]) -> bool:
    """Return whether a list holds texts rather than sources: some item has white space, and none can only be a source.

    A URL and `-` are texts among texts, and sources among sources.

    Args:
        items: Strings and paths.

    Raises:
        InputError: If some items name a source, and another one can only be a text.
    """
    with_white_space = [item for item in items if isinstance(item, str) and _WHITE_SPACE.search(item)]
    if not with_white_space:
        return False
    text = next((item for item in with_white_space if not is_source(item)), None)
    among_files = all(map(is_file_name, with_white_space))  # one of which is missing
    source = next((item for item in items if _is_source(item) and (among_files or not _is_ambiguous(item))), None)
    if source is None:
        return True
    if text is not None:
        raise InputError(
            f"the corpus holds the source {_path(source)} and {short_repr(text)}, which does not exist; expected "
            'sources only or texts only: datasets.Dataset.from_dict({"text": texts}) holds any texts'
        )
    return False


@dataclass(frozen=True)
class _MemorySource:
    name: str
    texts: Callable[[], Iterator[str]]


def _is_source(item: str | os.PathLike[str]) -> bool:
    return isinstance(item, os.PathLike) or is_source(item)


def _is_ambiguous(item: str | os.PathLike[str]) -> bool:
    """Return whether an item is a source among sources, and a text among texts."""
    return isinstance(item, str) and (item == STANDARD_INPUT or is_url(item))


def _path(item: str | os.PathLike[str]) -> str:
    return item if isinstance(item, str) else os.fspath(item)


def _expect_a_source(items: Sequence[str | os.PathLike[str]]) -> None:
    """Raise InputError if a list may have been meant as texts: only strings, and none of them an existing source."""
    if all(isinstance(item, str) and not is_source(item) for item in items):
        raise InputError(
            f"{short_repr(items[0])} does not exist; expected a corpus file, a folder, - or pydoc:, or a list of texts "
            "with white space: other texts go into a datasets.Dataset"
        )


def is_dataset(corpus: Any) -> bool:
    """Return whether an object is a dataset; `datasets` is not imported for one that cannot be."""
    if not type(corpus).__module__.startswith("datasets."):
        return False
    import datasets

    return isinstance(corpus, datasets.Dataset)


def _dataset_source(dataset: Any) -> TextSource:
    textual = [name for name, feature in dataset.features.items() if getattr(feature, "dtype", "") in _TEXT_TYPES]
    column = next((name for name in _TEXT_COLUMNS if name in textual), textual[0] if len(textual) == 1 else None)
    if column is None:
        raise InputError(
            f"the dataset has the columns {', '.join(dataset.column_names)}, {len(textual)} of them with text; "
            "expected one text column, or one named text or sentence: choose it with dataset.select_columns"
        )

    def texts() -> Iterator[str]:
        for batch in dataset.select_columns([column]).with_format(None).iter(batch_size=1000):
            yield from (text for text in batch[column] if text is not None)

    return _MemorySource("the given dataset", texts)


def _expect_unicode(texts: Sequence[str]) -> None:
    for number, text in enumerate(texts, start=1):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"item {number} of the corpus holds a lone surrogate; expected valid Unicode: mend the text"
            ) from error
