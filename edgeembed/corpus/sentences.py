"""Sentences of docstrings: prose without code, tables, argument lists and markup, split into sentences."""

import inspect
import re
from collections.abc import Iterator
from itertools import pairwise

_BOUNDARY = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z])")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:e\.g|i\.e|vs|cf|al|fig|eq|sec|dr|mr|mrs|ms|prof|st|resp|approx|[A-Z])\.$", re.IGNORECASE
)
_WORD = re.compile(r"[\"'(\[]*[^\W\d_]+(?:['\u2019-][^\W\d_]+)*[\"')\],.;:!?]*$")
_CODE = re.compile(r"->|>>>|==|::|://|[{}<>|\\@$%^~]|\w\(\w*=")

_MIN_WORDS = 3
_MIN_SHARE_OF_WORDS = 0.6  # of the tokens
_MIN_SHARE_OF_LETTERS = 0.75  # of the characters, with spaces

_DROPPED_SECTION = re.compile(
    r"(arg|argument|attribute|example|input|keyword|method|output|param|parameter|raise|receive|reference|"
    r"return|shape|usage|warn|yield)s?\b|see also",
    re.IGNORECASE,
)
"""Titles of sections that list names or show code. Other sections, such as notes, are prose."""

_SECTION = re.compile(r"\w+(?: \w+)?\s*:$")
_FIELD = re.compile(r":\w[^:`]*:(?:\s|$)|@\w+")
_PROSE_DIRECTIVE = re.compile(r"\.\. (?:attention|caution|hint|important|note|tip|warning)::\s*(.*)")
_UNDERLINE = re.compile(r"([-=~^\"'*#+])\1{2,}$")
_RULE = re.compile(r"[-=~+|_*#^\s]*$")
_BULLET = re.compile(r"(?:[-*+•]|\(?\d{1,2}[.)])\s+")
_WRAP_TOLERANCE = 3
"""Lines of one paragraph do not differ by more in indentation, in characters."""

_INLINE = (
    (re.compile(r":[\w:+-]+:`~(?:[^`<>]*\.)?([^`.<>]+)`"), r"\1"),  # :class:`~package.Name` shows Name
    (re.compile(r":[\w:+-]+:`([^`<>]+?)\s*(?:<[^`>]*>)?`"), r"\1"),  # :ref:`words <target>` shows words
    (re.compile(r"`([^`<>]+?)\s*<[^`>]*>`_{0,2}"), r"\1"),  # `words <address>`_ shows words
    (re.compile(r"!?\[([^\[\]]+)\]\([^()\s]*\)"), r"\1"),  # [words](address) shows words
    (re.compile(r"\s*\[[\w#*]*\]_"), ""),  # a footnote reference
    (re.compile(r"`+([^`]*)`+_{0,2}"), r"\1"),
    (re.compile(r"\*\*(\S(?:[^*]*\S)?)\*\*"), r"\1"),
    (re.compile(r"(?<![\w*])\*(\w(?:[^*]*\w)?)\*(?![\w*])"), r"\1"),
    (re.compile(r"\s+"), " "),
)


def split_sentences(docstring: str) -> Iterator[str]:
    """Yield the sentences of a docstring that are natural language, without markup.

    Args:
        docstring: The raw docstring, indentation included.
    """
    for paragraph in find_prose(docstring):
        for sentence in split_paragraph(paragraph):
            if looks_like_language(sentence):
                yield sentence


def split_paragraph(paragraph: str) -> list[str]:
    """Split a paragraph after `.`, `!` or `?` before a capital letter, except after abbreviations."""
    sentences, start = [], 0
    for boundary in _BOUNDARY.finditer(paragraph):
        if not _ABBREVIATION.search(paragraph[start : boundary.start()]):
            sentences.append(paragraph[start : boundary.end()].strip())
            start = boundary.end()
    return [*sentences, paragraph[start:].strip()]


def looks_like_language(text: str) -> bool:
    """Return whether a text is a sentence rather than code, a signature, a heading or the introduction of a list."""
    if _CODE.search(text) or text.endswith(":"):
        return False
    tokens = text.split()
    words = sum(_WORD.match(token) is not None for token in tokens)
    letters = sum(character.isalpha() or character == " " for character in text)
    return words >= max(_MIN_WORDS, _MIN_SHARE_OF_WORDS * len(tokens)) and letters >= _MIN_SHARE_OF_LETTERS * len(text)


def find_prose(docstring: str) -> list[str]:
    """Return the paragraphs of prose in a docstring, each on one line without markup.

    Doctests, literal and fenced code, directives, tables, headings, and lists of arguments, results and attributes in
    the styles of Google, NumPy and Sphinx are dropped.

    Args:
        docstring: The raw docstring, indentation included.
    """
    reader = _ProseReader()
    lines = inspect.cleandoc(docstring).splitlines()
    for line, following in pairwise([*lines, "", ""]):
        reader.read(line, following.strip())
    return reader.paragraphs


class _ProseReader:
    """Read a docstring line by line and collect its paragraphs."""

    def __init__(self) -> None:
        self.paragraphs: list[str] = []
        self._lines: list[str] = []
        self._indent = 0
        self._skip_right_of: int | None = None
        self._in_fence = self._in_doctest = self._in_dropped_section = False

    def read(self, line: str, following: str) -> None:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if text.startswith(("```", "~~~")):
            self._end_paragraph()
            self._in_fence = not self._in_fence
        elif not text:
            self._end_paragraph()
            self._in_doctest = False
        elif not self._is_skipped(indent):
            self._read_text(text, indent, following)
        if _UNDERLINE.match(following) and text:
            self._start_section(text)

    def _is_skipped(self, indent: int) -> bool:
        if self._skip_right_of is not None and indent <= self._skip_right_of:
            self._skip_right_of = None
        return self._in_fence or self._in_doctest or self._in_dropped_section or self._skip_right_of is not None

    def _read_text(self, text: str, indent: int, following: str) -> None:
        section = _SECTION.match(text)
        directive = _PROSE_DIRECTIVE.match(text)
        if text.startswith(">>>"):
            self._end_paragraph()
            self._in_doctest = True
        elif directive:
            self._end_paragraph()
            self._add(directive[1], indent)
        elif text.startswith("..") or _FIELD.match(text) or (section and _DROPPED_SECTION.match(text)):
            self._end_paragraph()
            self._skip_right_of = indent
        elif _RULE.match(text) or _UNDERLINE.match(following):
            self._end_paragraph()
        else:
            self._add(text, indent)

    def _start_section(self, title: str) -> None:
        self._in_dropped_section = _DROPPED_SECTION.match(title) is not None

    def _add(self, text: str, indent: int) -> None:
        bullet = _BULLET.match(text)
        if bullet or abs(indent - self._indent) > _WRAP_TOLERANCE:
            self._end_paragraph()
        mark = bullet.end() if bullet else 0
        if not self._lines:
            self._indent = indent + mark
        self._lines.append(text[mark:])

    def _end_paragraph(self) -> None:
        joined = " ".join(self._lines)
        self._lines = []
        if joined.endswith("::"):
            self._skip_right_of = self._indent
            joined = joined[:-1]
        if joined:
            self.paragraphs.append(_without_markup(joined))


def _without_markup(text: str) -> str:
    for pattern, replacement in _INLINE:
        text = pattern.sub(replacement, text)
    return text.strip()
