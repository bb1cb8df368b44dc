"""Sources of a corpus: files, folders, standard input, and Python's documentation."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.docstrings import docstrings
from edgeembed.corpus.remote import AnyPath, RemotePath, is_url, to_path
from edgeembed.corpus.sentences import split_sentences
from edgeembed.corpus.streams import (
    COMPRESSION_ENDINGS,
    compression_ending,
    file_ending,
    read_lines,
    read_standard_input,
)
from edgeembed.corpus.tables import read_columns, read_jsonl, read_parquet

STANDARD_INPUT = "-"
PYDOC_PREFIX = "pydoc:"
STANDARD_LIBRARY = "stdlib"
ENDINGS = (".txt", ".tsv", ".csv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Source:
    """One stream of texts.

    Attributes:
        name: A file's path or URL, `-` for standard input, or `pydoc:` with `stdlib` or module names.
        columns: The columns of a table to read. If empty, the default ones.
    """

    name: str
    columns: tuple[str, ...] = ()

    @property
    def is_file(self) -> bool:
        """Whether the source is a file, rather than standard input or Python's documentation."""
        return self.name != STANDARD_INPUT and not self.name.startswith(PYDOC_PREFIX)

    @property
    def path(self) -> AnyPath:
        """The path of a file."""
        return to_path(self.name)

    def texts(self) -> Iterator[str]:
        """Yield the raw texts, one in memory at a time.

        Raises:
            InputError: If the source cannot be read.
        """
        if self.name == STANDARD_INPUT:
            return (line for _, line in read_standard_input())
        if self.name.startswith(PYDOC_PREFIX):
            return iter(_pydoc_sentences(self.name.removeprefix(PYDOC_PREFIX)))
        return _file_texts(self.path, self.columns)


def find_sources(names: Sequence[str | Path]) -> list[Source]:
    """Return the sources of a list of names; each folder is replaced by the files below it, sorted by path.

    Args:
        names: Files, folders, their URLs (see `RemotePath`), `-`, `pydoc:`, `pydoc:stdlib` or `pydoc:json,numpy`.
            `#column1,column2` after a path chooses the columns of its tables.

    Raises:
        InputError: If a path does not exist, its ending is unknown, or a folder holds no corpus file.
    """
    return [source for name in names for source in _expand(str(name))]


def split_columns(name: str) -> tuple[AnyPath, tuple[str, ...]]:
    """Split `PATH#column1,column2` into the path and the columns.

    Args:
        name: A path or URL, perhaps with columns. If a file has exactly this name, the `#` is part of its path.

    Returns:
        The path and the names of the columns; no columns if none are given.
    """
    path, mark, columns = name.rpartition("#")
    if not mark or _exists(name):
        return to_path(name), ()
    return to_path(path), tuple(column.strip() for column in columns.split(",") if column.strip())


def is_source(name: str) -> bool:
    """Return whether a string names a source: an existing file or folder, a URL, standard input, or `pydoc:`."""
    if name == STANDARD_INPUT or name.startswith(PYDOC_PREFIX):
        return True
    if is_url(name):
        return len(name.split()) == 1  # more words are a text that begins with one
    return _exists(name) or _exists(name.rpartition("#")[0])


def is_file_name(name: str) -> bool:
    """Return whether a string ends like the name of a corpus file, such as `my notes.txt`."""
    return _ending(Path(name)) is not None


def _exists(name: str) -> bool:
    try:
        return name != "" and to_path(name).exists()
    except OSError:  # too long for a path
        return False


def _expand(name: str) -> list[Source]:
    if name == STANDARD_INPUT or name.startswith(PYDOC_PREFIX):
        return [Source(name)]
    path, columns = split_columns(name)
    if not path.exists():
        raise InputError(f"{name} does not exist; expected a corpus file, a folder, - or {PYDOC_PREFIX}")
    if path.is_dir():
        return [Source(str(file), columns) for file in _files_below(path)]
    if _ending(path) is None:
        raise InputError(
            f"{path} has an unknown ending; expected {', '.join(ENDINGS)}, "
            f"all but the last also with {', '.join(COMPRESSION_ENDINGS)}: rename or convert it"
        )
    return [Source(str(path), columns)]


def _files_below(folder: AnyPath) -> Sequence[AnyPath]:
    found: Iterable[AnyPath] = (
        folder.files_below()
        if isinstance(folder, RemotePath)
        else (file for file in folder.rglob("*") if file.is_file())
    )
    files = [file for file in found if _ending(file) is not None]
    if not files:
        raise InputError(f"{folder} holds no corpus file; expected one that ends in {', '.join(ENDINGS)}")
    return sorted(files, key=lambda file: file.parts if isinstance(file, Path) else (str(file),))


def _ending(path: AnyPath) -> str | None:
    ending = file_ending(path)
    return ending if ending in ENDINGS and not (ending == ".parquet" and compression_ending(path)) else None


def _file_texts(path: AnyPath, columns: Sequence[str]) -> Iterator[str]:
    readers: dict[str, Callable[[AnyPath, Sequence[str]], Iterator[str]]] = {
        ".tsv": _table_texts,
        ".csv": _table_texts,
        ".jsonl": read_jsonl,
        ".parquet": read_parquet,
    }
    ending = _ending(path)
    if ending in readers:
        return readers[ending](path, columns)
    if columns:
        raise InputError(f"{path}#{','.join(columns)} asks for columns; expected a table, and a .txt file has none")
    return (line for _, line in read_lines(path))


def _table_texts(path: AnyPath, columns: Sequence[str]) -> Iterator[str]:
    return (text for _, fields in read_columns(path, columns) for text in fields)


@functools.lru_cache(maxsize=1)  # one command may read it three times, half a minute each
def _pydoc_sentences(modules: str) -> tuple[str, ...]:
    if modules.strip() == STANDARD_LIBRARY:
        read = docstrings(standard_library_only=True)
    else:
        read = docstrings([name.strip() for name in modules.split(",") if name.strip()] or None)
    return tuple(sentence for docstring in read for sentence in split_sentences(docstring.text))
