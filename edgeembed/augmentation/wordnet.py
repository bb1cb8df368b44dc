"""WordNet: which words mean the same, and how sure that is."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from edgeembed_runtime.errors import InputError

PartOfSpeech = Literal["n", "v", "a", "r"]
"""Noun, verb, adjective (satellites included) and adverb, as WordNet letters them."""

PARTS_OF_SPEECH: tuple[PartOfSpeech, ...] = ("n", "v", "a", "r")

Senses = Mapping[tuple[str, PartOfSpeech], tuple[str, ...]]
"""The synsets of a lemma in a part of speech, the most frequent sense first."""

_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True)
class WordNet:
    """Lemmas, their senses, and the lemmas that share a sense.

    Attributes:
        senses: Synset ids by lemma and part of speech, the most frequent first.
        members: Lemmas by synset id.
        uses: How often a word stands in WordNet's definitions and examples, which tells "week" from "hebdomad".
        fingerprint: SHA-256 of the files that it was read from.
    """

    senses: Senses
    members: Mapping[str, tuple[str, ...]]
    uses: Mapping[str, int]
    fingerprint: str
    _lemmas: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Gather the lemmas of every part of speech."""
        object.__setattr__(self, "_lemmas", frozenset(lemma for lemma, _ in self.senses))

    def __contains__(self, lemma: object) -> bool:
        """Tell whether a word, or several, is a lemma in any part of speech."""
        return lemma in self._lemmas

    def count(self, lemma: str, part: PartOfSpeech) -> int:
        """Give how many senses a lemma has in a part of speech; 0 where it is none."""
        return len(self.senses.get((lemma, part), ()))

    def synonyms(self, lemma: str, part: PartOfSpeech) -> tuple[str, ...]:
        """Give the lemmas whose most frequent sense is the most frequent sense of this one.

        Nobody says which sense a text means. Where it is the foremost of both words, a reader takes both for the same:
        "automobile" for "car", but not "machine", which is another thing to most.

        Args:
            lemma: A lemma as WordNet writes it.
            part: Its part of speech.

        Returns:
            The other lemmas, in WordNet's order; none where the lemma is unknown.
        """
        first = self.senses.get((lemma, part), ())[:1]
        return tuple(
            member
            for synset in first
            for member in self.members[synset]
            if member != lemma and self.senses.get((member, part), ())[:1] == first
        )


def read_wordnet(folder: Path) -> WordNet:
    """Read a WordNet, whichever of two kinds the folder holds.

    Args:
        folder: A folder with the tables `oewn_synsets.tsv` and `oewn_lemmas.tsv`, plain or compressed (.xz, .gz,
            .zst); or one with the classic files (`index.noun`, `data.noun`, ...), such as nltk's `corpora/wordnet`.

    Returns:
        The WordNet, all of it in memory.

    Raises:
        InputError: If the folder holds neither, or its files are not what they should be.
        MissingExtraError: If the folder needs nltk, and that is not installed.
    """
    from edgeembed.augmentation.wordnet_classic import read_classic
    from edgeembed.augmentation.wordnet_tables import find_tables, read_tables

    tables = find_tables(folder)
    if tables is not None:
        return read_tables(*tables)
    if (folder / "index.noun").is_file():
        return read_classic(folder)
    raise InputError(
        f"{folder} holds no WordNet; expected oewn_synsets.tsv and oewn_lemmas.tsv (also .xz, .gz, .zst), "
        "or index.noun, data.noun and the other files of nltk's corpora/wordnet"
    )


def count_uses(texts: Iterable[str]) -> Counter[str]:
    """Count the words of definitions and examples, case folded."""
    return Counter(word for text in texts for word in _WORD.findall(text.lower()))


def files_fingerprint(files: Iterable[Path]) -> str:
    """Identify files by name and content.

    Returns:
        A SHA-256 in hexadecimal.
    """
    import hashlib

    from edgeembed_runtime.storage.files import sha256

    lines = (f"{file.name}:{sha256(file)}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
