"""Clean sentences out of documentation."""

import re
from collections.abc import Iterator

from edgeembed.corpus.markup import find_prose

_BOUNDARY = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z])")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:e\.g|i\.e|vs|cf|al|fig|eq|sec|dr|mr|mrs|ms|prof|st|resp|approx|[A-Z])\.$", re.IGNORECASE
)
_WORD = re.compile(r"[\"'(\[]*[^\W\d_]+(?:['\u2019-][^\W\d_]+)*[\"')\],.;:!?]*$")
_CODE = re.compile(r"->|>>>|==|::|://|[{}<>|\\@$%^~]|\w\(\w*=")

_LEAST_WORDS = 3
_LEAST_SHARE_OF_WORDS = 0.6
_LEAST_SHARE_OF_LETTERS = 0.75


def split_sentences(docstring: str) -> Iterator[str]:
    """Give the sentences of a docstring that look like language, without markup.

    Args:
        docstring: The text as Python holds it, indentation included.
    """
    for paragraph in find_prose(docstring):
        for sentence in split_paragraph(paragraph):
            if looks_like_language(sentence):
                yield sentence


def split_paragraph(paragraph: str) -> list[str]:
    """Give a paragraph's sentences, cut after `.`, `!` or `?` before a capital but for abbreviations."""
    sentences, start = [], 0
    for boundary in _BOUNDARY.finditer(paragraph):
        if not _ABBREVIATION.search(paragraph[start : boundary.start()]):
            sentences.append(paragraph[start : boundary.end()].strip())
            start = boundary.end()
    return [*sentences, paragraph[start:].strip()]


def looks_like_language(text: str) -> bool:
    """Tell whether a text is a sentence rather than code, a signature, a heading or the lead-in to a list."""
    if _CODE.search(text) or text.endswith(":"):
        return False
    tokens = text.split()
    words = sum(_WORD.match(token) is not None for token in tokens)
    letters = sum(character.isalpha() or character == " " for character in text)
    return words >= max(_LEAST_WORDS, _LEAST_SHARE_OF_WORDS * len(tokens)) and letters >= _LEAST_SHARE_OF_LETTERS * len(
        text
    )
