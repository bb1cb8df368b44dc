"""WordNet as Princeton's files have it, read by nltk, where `edgeembed[nltk]` is installed."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from pathlib import Path
from typing import Any

from edgeembed_runtime.errors import InputError, MissingExtraError

from edgeembed.augmentation.wordnet import PARTS_OF_SPEECH, Senses, WordNet, count_uses, files_fingerprint

_STEMS = ("adj", "adv", "noun", "verb")
_FILES = ("lexnames", *(name for stem in _STEMS for name in (f"index.{stem}", f"data.{stem}", f"{stem}.exc")))


def read_classic(folder: Path) -> WordNet:
    """Read a folder of the classic files, such as nltk's `corpora/wordnet`.

    Args:
        folder: Holds `lexnames` and, for nouns, verbs, adjectives and adverbs, `index.noun`, `data.noun`, `noun.exc`.

    Raises:
        MissingExtraError: If nltk is not installed.
        InputError: If a file is absent or nltk cannot read it.
    """
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        raise InputError(f"{folder} holds no {missing[0]}; expected all files of nltk's corpora/wordnet")
    try:
        data, module = importlib.import_module("nltk.data"), importlib.import_module("nltk.corpus.reader.wordnet")
    except ImportError as error:
        raise MissingExtraError("nltk", "nltk") from error
    # nltk reads below its data path alone, and asks whoever trusts a folder to add it there: the user named this one.
    data.path.append(str(folder.resolve()))
    try:
        with contextlib.closing(_reader(module, folder)) as reader:
            synsets = {_identity(synset): synset for synset in reader.all_synsets()}
            senses = _senses(reader)
    except Exception as error:  # nltk lets through whatever its parsing meets
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{folder} cannot be read as WordNet ({reason}); expected its files whole: unpack them again"
        ) from error
    finally:
        data.path.remove(str(folder.resolve()))
    members = {identity: _names(synset) for identity, synset in synsets.items()}
    uses = count_uses(text for synset in synsets.values() for text in (synset.definition(), *synset.examples()))
    return WordNet(senses, members, uses, files_fingerprint(folder / name for name in _FILES))


def _senses(reader: Any) -> Senses:
    senses: dict[Any, tuple[str, ...]] = {}
    for part in PARTS_OF_SPEECH:
        for key in list(reader.all_lemma_names(pos=part)):
            # The index folds case, and looking up "glasses" gives those of "glass" too: members tell whose sense it is.
            for synset in reader.synsets(key, part):
                for name in _names(synset):
                    if name.lower() == key.replace("_", " "):
                        senses[name, part] = (*senses.get((name, part), ()), _identity(synset))
    return senses


def _identity(synset: Any) -> str:
    return f"{synset.offset():08}-{synset.pos()}"


def _names(synset: Any) -> tuple[str, ...]:
    return tuple(name.replace("_", " ") for name in synset.lemma_names())


def _reader(module: Any, folder: Path) -> Any:
    class English(module.WordNetCorpusReader):  # type: ignore[misc]  # nltk carries no types
        def __init__(self) -> None:
            try:
                super().__init__(str(folder), None)
            except BaseException:
                self.close()
                raise

        def map_wn(self, version: str = "wordnet") -> None:
            """Map nothing: that is for other languages, and looks for a WordNet outside the folder."""

        def close(self) -> None:
            """Close the files that it keeps open."""
            for file in getattr(self, "_data_file_map", {}).values():
                file.close()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are no other languages
        return English()
