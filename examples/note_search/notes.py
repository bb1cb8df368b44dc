"""A search index of the notes in a folder."""

import logging
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from edgeembed_runtime import Encoder, Hit, Index, InputError
from edgeembed_runtime.characters import is_blank

logger = logging.getLogger(__name__)

SUFFIXES = (".md", ".txt")
MAX_SIZE_BYTES = 2_000_000
_TAG = re.compile(r"(?<![\w#])#([^\W\d][\w/-]*)")


@dataclass(frozen=True)
class Note:
    """A note on the disk. Its id is its path within the folder, with forward slashes."""

    id: str
    path: Path
    modified_ns: int
    size_bytes: int

    def is_version(self, metadata: dict[str, Any] | None) -> bool:
        """Return whether the metadata of an indexed note is of this version of the file."""
        current = (self.modified_ns, self.size_bytes)
        return metadata is not None and (metadata["modified_ns"], metadata["size_bytes"]) == current

    def metadata(self, text: str) -> dict[str, Any]:
        """Return what is stored beside the text."""
        return {"modified_ns": self.modified_ns, "size_bytes": self.size_bytes, "tags": find_tags(text)}

    def read(self) -> str:
        """Return the text.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is not UTF-8 text, blank, or too large.
        """
        if self.size_bytes > MAX_SIZE_BYTES:
            raise ValueError("the file is too large")
        try:
            text = self.path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise ValueError("the file is not UTF-8 text")
        if is_blank(text):
            raise ValueError("the file has no words")
        return text


@dataclass
class Changes:
    """What `Notes.sync` changed in the index: ids of notes, and why files or folders were skipped, by their path."""

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether the index changed."""
        return bool(self.added or self.updated or self.removed)


class Notes:
    """The notes in a folder, and their index, which is saved in another folder.

    The files are the truth: `sync` compares them with the index, so nothing is lost if the index is removed, or if
    files change while no program watches them. Threads may search while one thread syncs.

    Args:
        folder: The folder of the notes.
        index_folder: The folder of the saved index; it is created by `save`. It must be outside of the notes, because
            it is replaced as a whole, which a watcher of the notes would have to follow.
        encoder: The encoder; None means the built-in one. An index of another encoder is built again.

    Raises:
        InputError: If the folder of the notes does not exist or contains the index, or the index is of other documents.
    """

    def __init__(self, folder: Path, index_folder: Path, encoder: Encoder | None = None) -> None:
        self.folder = folder
        self.index_folder = index_folder
        self._expect_folder()
        if index_folder.resolve().is_relative_to(folder.resolve()):
            raise InputError(
                f"{index_folder} is inside the notes, expected a folder for the index outside; choose another"
            )
        self._method: Literal["hybrid", "embedding"] = "hybrid" if find_spec("bm25s") else "embedding"
        self._skipped: dict[str, str] = {}
        encoder = encoder or Encoder()
        try:
            self._index = Index.open(index_folder, encoder)
        except InputError:  # there is none yet, it is damaged, or another encoder built it
            self._index = Index.build(encoder, [], precision="int8")
        if any("modified_ns" not in document.metadata for document in self._index):
            raise InputError(f"{index_folder} is an index of other documents, expected one of notes; choose another")

    def __len__(self) -> int:
        """Return the number of notes in the index."""
        return len(self._index)

    def sync(self) -> Changes:
        """Add, update and remove notes, so that the index matches the files.

        A file that cannot be read keeps the text that it was last indexed with. A file that is not text is removed.

        Returns:
            What changed, and what was skipped.

        Raises:
            InputError: If the folder of the notes does not exist, for example because a disk was unplugged.
        """
        self._expect_folder()
        changes = Changes()
        indexed = {document.id: document.metadata for document in self._index}
        found: set[str] = set()
        texts: dict[str, str] = {}
        metadata: dict[str, dict[str, Any]] = {}
        for note in self._scan(changes.skipped):
            found.add(note.id)
            if note.is_version(indexed.get(note.id)):
                continue
            try:
                texts[note.id] = note.read()
            except OSError as error:
                changes.skipped[note.id] = str(error.strerror)
            except ValueError as error:
                changes.skipped[note.id] = str(error)
                found.discard(note.id)
            else:
                metadata[note.id] = note.metadata(texts[note.id])
        changes.removed = [i for i in indexed if i not in found and not _is_below(i, changes.skipped)]
        changes.updated = [i for i in texts if i in indexed]
        changes.added = [i for i in texts if i not in indexed]
        self._apply(changes, texts, metadata)
        return changes

    def refresh(self) -> str:
        """Sync, save the index if it changed, and return one line that says what happened."""
        try:
            changes = self.sync()
            if changes:
                self.save()
        except InputError as error:
            logger.warning("%s", error)
            return str(error)
        for path, reason in changes.skipped.items():
            if self._skipped.get(path) != reason:
                logger.warning("%s is skipped: %s", path, reason)
        self._skipped = changes.skipped
        counts = {name: len(getattr(changes, name)) for name in ("added", "updated", "removed", "skipped")}
        return ", ".join([f"{len(self)} notes", *(f"{count} {name}" for name, count in counts.items() if count)])

    def save(self) -> None:
        """Save the index, atomically.

        Raises:
            InputError: If it cannot be written, or its folder contains other files.
        """
        self._index.save(self.index_folder, force=True)

    def search(self, query: str, top_k: int = 20) -> list[Hit]:
        """Return the notes that match a query best.

        Args:
            query: Words, and tags that a note must have: "travel plans #family".
            top_k: The maximum number of hits.

        Returns:
            The hits, best first, by meaning and, if bm25s is installed, by words. For a query of tags alone, all notes
            with the tags, the latest first, with score 0.
        """
        tags = find_tags(query)
        words = _TAG.sub(" ", query)
        condition = {"$and": [{"tags": {"$contains": tag}} for tag in tags]} if tags else None
        if not is_blank(words):
            return self._index.search(words, top_k, filter=condition, method=self._method)
        tagged = [document for document in self._index if tags and set(tags) <= set(document.metadata["tags"])]
        tagged.sort(key=lambda document: document.metadata["modified_ns"], reverse=True)
        return [Hit(document.id, 0.0, document.text, document.metadata) for document in tagged[:top_k]]

    def _apply(self, changes: Changes, texts: dict[str, str], metadata: dict[str, dict[str, Any]]) -> None:
        if changes.removed:
            self._index.remove(changes.removed)
        if ids := changes.updated:
            self._index.update(ids, [texts[i] for i in ids], metadata=[metadata[i] for i in ids])
        if ids := changes.added:
            self._index.add([texts[i] for i in ids], ids=ids, metadata=[metadata[i] for i in ids])

    def _expect_folder(self) -> None:
        if not self.folder.is_dir():
            raise InputError(f"{self.folder} is not a folder, expected a folder of notes; choose another")

    def _scan(self, skipped: dict[str, str]) -> Iterator[Note]:
        """Yield the notes on the disk, and record what cannot be read."""

        def record(error: OSError) -> None:
            if Path(error.filename) == self.folder:
                raise InputError(f"cannot read {self.folder}: {error.strerror}; choose another folder") from error
            skipped[Path(error.filename).relative_to(self.folder).as_posix()] = str(error.strerror)

        for parent, folders, names in os.walk(self.folder, onerror=record):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                path = Path(parent, name)
                if name.startswith(".") or path.suffix.lower() not in SUFFIXES:
                    continue
                note_id = path.relative_to(self.folder).as_posix()
                try:
                    note_id.encode()
                    status = path.stat()
                except UnicodeEncodeError:
                    skipped[ascii(note_id)] = "its name is not valid Unicode"
                except FileNotFoundError:  # removed since the folder was listed
                    continue
                else:
                    if stat.S_ISREG(status.st_mode):  # reading a pipe would wait for its writer
                        yield Note(note_id, path, status.st_mtime_ns, status.st_size)


def find_tags(text: str) -> list[str]:
    """Return the tags in a text, "#budget" for example, sorted, in lower case and without "#"."""
    return sorted({tag.lower() for tag in _TAG.findall(text)})


def _is_below(note_id: str, skipped: dict[str, str]) -> bool:
    """Return whether a note is in a folder that could not be read."""
    return any(note_id.startswith(f"{folder}/") for folder in skipped)
