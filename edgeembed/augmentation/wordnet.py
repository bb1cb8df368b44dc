"""WordNet: lemmas, senses and synonyms, read from Open English WordNet's tables or Princeton's files."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from edgeembed_runtime.errors import InputError, MissingExtraError
from edgeembed_runtime.storage.files import sha256

from edgeembed.corpus.streams import COMPRESSION_ENDINGS
from edgeembed.corpus.tables import read_columns

PartOfSpeech = Literal["n", "v", "a", "r"]
"""Noun, verb, adjective (satellites included) and adverb, by WordNet's letters."""

PARTS_OF_SPEECH: tuple[PartOfSpeech, ...] = ("n", "v", "a", "r")

Senses = Mapping[tuple[str, PartOfSpeech], tuple[str, ...]]
"""The synsets of a lemma in a part of speech, the most frequent sense first."""

_TABLES = ("oewn_synsets.tsv", "oewn_lemmas.tsv")
_CLASSIC_FILES = (
    "lexnames",
    *(name for stem in ("adj", "adv", "noun", "verb") for name in (f"index.{stem}", f"data.{stem}", f"{stem}.exc")),
)
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True)
class WordNet:
    """A WordNet in memory.

    Attributes:
        senses: The synset ids of each lemma and part of speech, the most frequent sense first.
        members: The lemmas of each synset id.
        uses: The frequency of each word in WordNet's definitions and examples: high for "week", low for "hebdomad".
        fingerprint: The SHA-256 of the files it was read from.
    """

    senses: Senses
    members: Mapping[str, tuple[str, ...]]
    uses: Mapping[str, int]
    fingerprint: str
    _lemmas: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Collect the lemmas of all parts of speech."""
        object.__setattr__(self, "_lemmas", frozenset(lemma for lemma, _ in self.senses))

    def __contains__(self, lemma: object) -> bool:
        """Return whether a word or phrase is a lemma of any part of speech."""
        return lemma in self._lemmas

    def count(self, lemma: str, part: PartOfSpeech) -> int:
        """Return the number of senses of a lemma in a part of speech; 0 if it is not a lemma."""
        return len(self.senses.get((lemma, part), ()))

    def synonyms(self, lemma: str, part: PartOfSpeech) -> tuple[str, ...]:
        """Return the lemmas whose most frequent sense is also this lemma's most frequent sense.

        The sense of a word in a text is unknown, but readers assume the most frequent one: "automobile" is a synonym
        of "car", but "machine" is not, because its most frequent sense is another.

        Args:
            lemma: A lemma as WordNet writes it.
            part: The part of speech.

        Returns:
            The other lemmas in WordNet's order; none if the lemma is unknown.
        """
        first = self.senses.get((lemma, part), ())[:1]
        return tuple(
            member
            for synset in first
            for member in self.members[synset]
            if member != lemma and self.senses.get((member, part), ())[:1] == first
        )


def read_wordnet(folder: Path) -> WordNet:
    """Read a WordNet into memory.

    Args:
        folder: A folder with the tables `oewn_synsets.tsv` and `oewn_lemmas.tsv`, plain or compressed (.xz, .gz,
            .zst); or one with the classic files (`index.noun`, `data.noun`, ...), such as nltk's `corpora/wordnet`.

    Raises:
        InputError: If the folder holds neither, or a file is invalid.
        MissingExtraError: If the folder needs nltk and it is not installed.
    """
    tables = _find_tables(folder)
    if tables is not None:
        return _read_tables(*tables)
    if (folder / "index.noun").is_file():
        return _read_classic(folder)
    raise InputError(
        f"{folder} holds no WordNet; expected oewn_synsets.tsv and oewn_lemmas.tsv (also .xz, .gz, .zst), "
        "or index.noun, data.noun and the other files of nltk's corpora/wordnet"
    )


def _find_tables(folder: Path) -> tuple[Path, Path] | None:
    """Return the tables of synsets and of lemmas, plain or compressed; None if either is missing."""
    found = [
        next((file for ending in ("", *COMPRESSION_ENDINGS) if (file := folder / f"{name}{ending}").is_file()), None)
        for name in _TABLES
    ]
    return (found[0], found[1]) if found[0] and found[1] else None


def _read_tables(synsets: Path, lemmas: Path) -> WordNet:
    """Read the tables of Open English WordNet: members are separated by `|`, senses by commas."""
    members: dict[str, tuple[str, ...]] = {}
    texts: list[str] = []
    for _, (name, listed, *glosses) in read_columns(synsets, ("synset", "members", "definition", "examples")):
        members[name] = tuple(listed.split("|"))
        texts += glosses
    senses: dict[tuple[str, PartOfSpeech], tuple[str, ...]] = {}
    for number, (lemma, marked, listed) in read_columns(lemmas, ("lemma", "pos", "synsets_in_sense_order")):
        part = marked.partition("-")[0]  # "n-1" and "n-2" are homographs, such as the two basses
        ids = tuple(listed.split(","))
        unknown = [name for name in ids if name not in members]
        if part not in PARTS_OF_SPEECH or unknown:
            given = f"synset {unknown[0]!r}, which {synsets.name} lacks" if unknown else f"part of speech {marked!r}"
            raise InputError(f"{lemmas} line {number} names {given}; expected both files of one edition: fetch them")
        key = lemma, part
        senses[key] = senses.get(key, ()) + ids
    return WordNet(senses, members, _count_words(texts), _files_fingerprint((synsets, lemmas)))


def _read_classic(folder: Path) -> WordNet:
    """Read Princeton's files with nltk."""
    missing = [name for name in _CLASSIC_FILES if not (folder / name).is_file()]
    if missing:
        raise InputError(f"{folder} lacks {missing[0]}; expected all files of nltk's corpora/wordnet")
    try:
        data, module = importlib.import_module("nltk.data"), importlib.import_module("nltk.corpus.reader.wordnet")
    except ImportError as error:
        raise MissingExtraError("nltk", "nltk") from error
    # nltk refuses to read outside its data path. The user chose this folder, so it is trusted.
    data.path.append(str(folder.resolve()))
    try:
        with contextlib.closing(_open_classic(module, folder)) as reader:
            synsets = {_synset_id(synset): synset for synset in reader.all_synsets()}
            senses = _classic_senses(reader)
    except Exception as error:  # nltk raises whatever its parsers raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{folder} cannot be read as WordNet ({reason}); expected complete files: unpack them again"
        ) from error
    finally:
        data.path.remove(str(folder.resolve()))
    members = {identifier: _lemma_names(synset) for identifier, synset in synsets.items()}
    uses = _count_words(text for synset in synsets.values() for text in (synset.definition(), *synset.examples()))
    return WordNet(senses, members, uses, _files_fingerprint(folder / name for name in _CLASSIC_FILES))


def _open_classic(module: Any, folder: Path) -> Any:
    class EnglishReader(module.WordNetCorpusReader):  # type: ignore[misc]  # nltk has no types
        def __init__(self) -> None:
            try:
                super().__init__(str(folder), None)
            except BaseException:
                self.close()
                raise

        def map_wn(self, version: str = "wordnet") -> None:
            """Skip the mapping for other languages, which looks for a WordNet outside the folder."""

        def close(self) -> None:
            """Close the files that nltk keeps open."""
            for file in getattr(self, "_data_file_map", {}).values():
                file.close()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing other languages
        return EnglishReader()


def _classic_senses(reader: Any) -> Senses:
    senses: dict[Any, tuple[str, ...]] = {}
    for part in PARTS_OF_SPEECH:
        for key in list(reader.all_lemma_names(pos=part)):
            # The index folds case, and a look-up of "glasses" also returns the synsets of "glass": compare the members.
            for synset in reader.synsets(key, part):
                for name in _lemma_names(synset):
                    if name.lower() == key.replace("_", " "):
                        senses[name, part] = (*senses.get((name, part), ()), _synset_id(synset))
    return senses


def _synset_id(synset: Any) -> str:
    return f"{synset.offset():08}-{synset.pos()}"


def _lemma_names(synset: Any) -> tuple[str, ...]:
    return tuple(name.replace("_", " ") for name in synset.lemma_names())


def _count_words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in _WORD.findall(text.lower()))


def _files_fingerprint(files: Iterable[Path]) -> str:
    """Return the SHA-256 of the names and contents of files, in hexadecimal."""
    lines = (f"{file.name}:{sha256(file)}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
