"""Real texts, grouped by topic, for simulated users: passages of Wikipedia articles and definitions of WordNet."""

import lzma
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

Topics = dict[str, list[str]]
Split = Literal["dev", "test"]

_ARTICLES, _PASSAGES = 80, 120
_SENTENCES = (240, 500)  # of an article; a longer one is more likely to be two of which one was not recognized
# Roots of subtrees of nouns, with 120 to 500 synsets each, that a person may be interested in separately.
_ROOTS = [
    "acid",
    "angiospermous tree",
    "aquatic bird",
    "atmospheric phenomenon",
    "building",
    "calendar day",
    "carnivore",
    "commerce",
    "contestant",
    "craft",
    "dish",
    "doctrine",
    "electrical device",
    "entertainer",
    "fabric",
    "flower",
    "fungus",
    "furnishing",
    "garment",
    "geological formation",
    "Indo-European",
    "insect",
    "meat",
    "microorganism",
    "mineral",
    "monetary unit",
    "musical instrument",
    "number",
    "occupation",
    "paper",
    "passerine",
    "reptile",
    "restraint",
    "rodent",
    "science",
    "social control",
    "spiny-finned fish",
    "spiritual being",
    "tool",
    "wheeled vehicle",
]


def read_topics(name: str, train: Path) -> dict[Split, Topics]:
    """Return the texts of each topic: every other topic for choosing settings ("dev"), the rest for reporting ("test").

    Args:
        name: "articles", where a topic is a Wikipedia article and a text is two sentences of it; or "definitions",
            where a topic is a subtree of WordNet's nouns and a text is a word with its definition.
        train: The folder of the training data.
    """
    topics = _articles(train) if name == "articles" else _definitions(train)
    names = sorted(topics)
    return {"dev": {name: topics[name] for name in names[::2]}, "test": {name: topics[name] for name in names[1::2]}}


def _articles(train: Path) -> Topics:
    """Return articles that begin where the first sentence of a title's lead stands."""
    sentences = list(_lines(train / "en" / "wikipedia.txt.xz"))
    positions: dict[str, int] = {}
    for position, sentence in enumerate(sentences):
        positions.setdefault(sentence, position)
    starts = sorted(
        (positions[first], title)
        for title, lead in _rows(train / "pairs" / "wikipedia_title_lead.tsv.xz")
        if (first := _first_sentence(lead, positions))
    )
    shortest, longest = _SENTENCES
    following = [end for end, _ in starts[1:]]
    lengths = [end - start for (start, _), end in zip(starts, following, strict=False)]
    long = [each for each, length in zip(starts, lengths, strict=False) if shortest <= length <= longest]
    chosen = long[:: max(1, len(long) // _ARTICLES)][:_ARTICLES]
    return {
        title: [" ".join(sentences[first : first + 2]) for first in range(start, start + 2 * _PASSAGES, 2)]
        for start, title in chosen
    }


def _first_sentence(lead: str, positions: dict[str, int]) -> str | None:
    ends = (match.end() for match in re.finditer(r"\. |$", lead))
    return next((lead[:end].strip() for end in ends if end > 40 and lead[:end].strip() in positions), None)


def _definitions(train: Path) -> Topics:
    words, texts, hyponyms = {}, {}, defaultdict(list)
    for synset, pos, _, members, definition, _, hypernyms in _rows(train / "wordnet" / "oewn_synsets.tsv.xz"):
        if pos == "n":
            words[synset] = members.split("|")[0].replace("_", " ")
            texts[synset] = f"{words[synset]}: {definition}"
            for hypernym in hypernyms.split(","):
                hyponyms[hypernym].append(synset)
    topics: Topics = {}
    for root in _ROOTS:
        subtrees = [_subtree(synset, hyponyms) for synset, word in words.items() if word == root]
        largest = max(subtrees, key=len)
        topics[root] = [texts[synset] for synset in sorted(largest)]
    return topics


def _subtree(root: str, hyponyms: dict[str, list[str]]) -> set[str]:
    found, waiting = {root}, [root]
    while waiting:
        new = set(hyponyms.get(waiting.pop(), [])) - found
        found |= new
        waiting += new
    return found


def _rows(path: Path) -> Iterator[list[str]]:
    rows = (line.split("\t") for line in _lines(path))
    next(rows)
    return rows


def _lines(path: Path) -> Iterator[str]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")
