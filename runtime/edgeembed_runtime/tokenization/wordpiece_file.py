"""Read the tokenizer.json of a WordPiece tokenizer with BERT's normalizer and pre-tokenizer."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from edgeembed_runtime.errors import BundleError, short_repr
from edgeembed_runtime.tokenization.vocabulary import MAX_ID, Vocabulary

# The time for a word is at worst proportional to the square of its length. Published tokenizers have a limit of 100.
_MAX_WORD_CHARACTERS = 1000
# Added tokens such as [PAD] and <mask>: white space, letters and digits of a text never belong to them.
MAX_ADDED_TOKEN_CHARACTERS = 62
# Where a vocabulary starts and ends, and where it may be divided. A token in which one of them is found by mistake
# leaves JSON that is not valid. What a pattern starts with is found fast.
_VOCABULARY_START = re.compile(rb'"vocab"\s*:\s*\{')
_VOCABULARY_END = re.compile(rb"\}(?<=[\d\s]\})")
_BETWEEN_TOKENS = re.compile(rb',(?<=\d,)\s*(?=")')
_PART_BYTES = 2**11
_ORDINARY_TOKEN = re.compile(r"\[[\w-]{1,60}\]|<[/\w|-]{1,60}>", re.ASCII)

Json = dict[str, Any]


class Template(NamedTuple):
    """Where special tokens go around a text, or around the two texts of a pair.

    Attributes:
        parts: The token ids before the text, after it, and after the second text of a pair.
    """

    parts: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """The number of special tokens."""
        return sum(map(len, self.parts))


class WordPiece(NamedTuple):
    """A WordPiece tokenizer as BERT's.

    Attributes:
        vocabulary: The id of each token.
        unknown: The id of the unknown token.
        prefix: The prefix of tokens that continue a word.
        max_word_characters: A longer word is unknown.
        added: The tokens that are found in a text before it is split into words, with their ids.
        clean_text: Whether control characters are removed.
        handle_chinese_chars: Whether Chinese characters are words of their own.
        strip_accents: Whether accents are removed.
        lowercase: Whether the text is lowercased.
        single: The special tokens of a text.
        pair: The special tokens of a pair.
    """

    vocabulary: Vocabulary
    unknown: int
    prefix: str
    max_word_characters: int
    added: dict[str, int]
    clean_text: bool
    handle_chinese_chars: bool
    strip_accents: bool
    lowercase: bool
    single: Template
    pair: Template


def read_wordpiece(content: bytes, where: str) -> WordPiece | None:
    """Read a tokenizer.json if it describes a WordPiece tokenizer as BERT's.

    Args:
        content: The bytes of the file.
        where: Its path, for messages.

    Returns:
        The tokenizer, or None if the file describes another one, or has added tokens that are matched in the
        normalized text or between words only.

    Raises:
        BundleError: If it describes a WordPiece tokenizer but is not valid.
    """
    if b'"WordPiece"' not in content:  # parsing a large vocabulary of another kind would take long
        return None
    document, vocabulary = _read_in_parts(content) or (read_json(content, where), None)
    if not _is_bert(document):
        return None
    try:
        return _parse(document, vocabulary or _vocabulary(document["model"].get("vocab")))
    except ValueError as error:
        raise BundleError(f"{where} {error}; export the bundle again") from error


def read_json(content: bytes, where: str) -> Json:
    """Return the content of a tokenizer.json.

    Raises:
        BundleError: If it is not a JSON object with a model.
    """
    try:
        document = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{where} is not a tokenizer: {error}; export the bundle again") from error
    if not isinstance(document, dict) or "model" not in document:
        raise BundleError(f"{where} is not a tokenizer: it has no model; export the bundle again")
    return document


def _read_in_parts(content: bytes) -> tuple[Json, Vocabulary] | None:
    """Read a tokenizer.json without ever having all tokens as Python objects, whose memory is not given back.

    Returns:
        The content of the file, with an empty vocabulary, and the vocabulary; None if the file must be read whole:
        if it is not valid, or if a token looks like the end of another one.
    """
    start = _VOCABULARY_START.search(content)
    end = start and _VOCABULARY_END.search(content, start.end())
    if not start or not end:
        return None
    first, last = start.end(), end.start()
    try:
        document = json.loads((content[:first] + content[last:]).decode("utf-8"))
        if document["model"]["vocab"] != {}:
            return None
        return document, Vocabulary(_parts(content, first, last), content.count(b'"', first, last) // 2)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _parts(content: bytes, start: int, end: int) -> Iterator[dict[str, int]]:
    """Yield the ids of about a hundred tokens at a time."""
    while start < end:
        between = _BETWEEN_TOKENS.search(content, start + _PART_BYTES, end)
        part_end, following = between.span() if between else (end, end)
        yield json.loads("{" + content[start:part_end].decode("utf-8") + "}")
        start = following


def _is_bert(document: Json) -> bool:
    parts = (document.get(name) for name in ("normalizer", "pre_tokenizer", "model"))
    types = [part.get("type") if isinstance(part, dict) else None for part in parts]
    return types == ["BertNormalizer", "BertPreTokenizer", "WordPiece"]


def _parse(document: Json, vocabulary: Vocabulary) -> WordPiece | None:
    model, normalizer = document["model"], document["normalizer"]
    added = _added_tokens(document.get("added_tokens", []), vocabulary)
    templates = _templates(document.get("post_processor"))
    if added is None or templates is None:
        return None
    unknown_token = _field(model, "unk_token", str)
    if unknown_token not in vocabulary:
        raise ValueError(f"has the unknown token {short_repr(unknown_token)}, expected one of the vocabulary")
    longest = _field(model, "max_input_chars_per_word", int)
    if not 0 <= longest <= _MAX_WORD_CHARACTERS:
        raise ValueError(f"reads words of {longest} characters, expected at most {_MAX_WORD_CHARACTERS}")
    lowercase = _field(normalizer, "lowercase", bool)
    strip_accents = normalizer.get("strip_accents")
    return WordPiece(
        vocabulary=vocabulary,
        unknown=vocabulary[unknown_token],
        prefix=_field(model, "continuing_subword_prefix", str),
        max_word_characters=longest,
        added=added,
        clean_text=_field(normalizer, "clean_text", bool),
        handle_chinese_chars=_field(normalizer, "handle_chinese_chars", bool),
        strip_accents=lowercase if strip_accents is None else _field(normalizer, "strip_accents", bool),
        lowercase=lowercase,
        single=templates[0],
        pair=templates[1],
    )


def _field(part: Json, name: str, kind: type) -> Any:
    value = part.get(name)
    if type(value) is not kind:
        raise ValueError(f"has {name} {short_repr(value)}, expected {kind.__name__}")
    return value


def _vocabulary(value: Any) -> Vocabulary:
    if not isinstance(value, dict) or not value:
        raise ValueError("has no vocabulary")
    return Vocabulary([value], len(value))


def _added_tokens(value: Any, vocabulary: Vocabulary) -> dict[str, int] | None:
    """Return the ids of the added tokens; None if one is of a kind that is not supported here."""
    if not isinstance(value, list) or not all(isinstance(token, dict) for token in value):
        raise ValueError("has added_tokens that are not a list of objects")
    added: dict[str, int] = {}
    for token in value:
        content, number = _field(token, "content", str), _field(token, "id", int)
        flags = {name: _field(token, name, bool) for name in ("single_word", "lstrip", "rstrip", "normalized")}
        # Whether a token takes the white space around it (lstrip, rstrip) changes no id.
        if flags["single_word"] or flags["normalized"] or not _ORDINARY_TOKEN.fullmatch(content):
            return None
        if vocabulary.get(content) != number:
            return None
        added[content] = number
    return added


def _templates(processor: Any) -> tuple[Template, Template] | None:
    """Return the templates of a text and of a pair; None for another kind of post-processor."""
    if processor is None:
        return Template(((), ())), Template(((), (), ()))
    kind = processor.get("type") if isinstance(processor, dict) else None
    if kind in ("BertProcessing", "RobertaProcessing"):  # which may be any JSON value
        cls, sep = ((_special_id(processor.get(name)),) for name in ("cls", "sep"))
        return Template((cls, sep)), Template((cls, sep if kind == "BertProcessing" else sep * 2, sep))
    if kind != "TemplateProcessing":
        return None
    special = _special_tokens(processor.get("special_tokens"))
    single, pair = (_template(processor.get(name), special) for name in ("single", "pair"))
    texts = [[part for part in parts if isinstance(part, str)] for parts in (single, pair)]
    if "B" in texts[0]:
        raise ValueError("has a template that refers to a second text, which it does not define")
    if len(texts[0]) > 1:
        raise ValueError("repeats a text's tokens, expected each once")
    return (_split(single), _split(pair)) if texts == [["A"], ["A", "B"]] else None


def _special_id(value: Any) -> int:
    if not isinstance(value, list) or [type(item) for item in value] != [str, int] or not 0 <= value[1] <= MAX_ID:
        raise ValueError(f"has the special token {short_repr(value)}, expected a token and its id")
    number: int = value[1]
    return number


def _special_tokens(value: Any) -> dict[str, tuple[int, ...]]:
    if type(value) is not dict:
        raise ValueError(f"has special_tokens {short_repr(value)}, expected an object")
    special: dict[str, tuple[int, ...]] = {}
    for name, token in value.items():
        ids = token.get("ids") if isinstance(token, dict) else None
        if not isinstance(ids, list) or not all(type(item) is int and 0 <= item <= MAX_ID for item in ids):
            raise ValueError(f"has the special token {short_repr(token)}, expected its ids")
        special[name] = tuple(ids)
    return special


def _template(value: Any, special: dict[str, tuple[int, ...]]) -> list[str | tuple[int, ...]]:
    """Return a template's parts: the name of a text, or the ids of a special token."""
    if type(value) is not list:
        raise ValueError(f"has the template {short_repr(value)}, expected a list")
    return [_template_part(part, special) for part in value]


def _template_part(part: Any, special: dict[str, tuple[int, ...]]) -> str | tuple[int, ...]:
    (kind, body), *more = part.items() if isinstance(part, dict) and part else [("", None)]
    name = body.get("id") if isinstance(body, dict) else None
    if more or kind not in ("Sequence", "SpecialToken") or not isinstance(name, str):
        raise ValueError(f"has the template part {short_repr(part)}, expected a Sequence or a SpecialToken")
    if kind == "Sequence":
        return name
    if name not in special:
        raise ValueError(f"has a template that refers to the token {name[:80]!r}, which it does not define")
    return special[name]


def _split(parts: list[str | tuple[int, ...]]) -> Template:
    """Return the special tokens between the texts of a template."""
    groups: list[tuple[int, ...]] = [()]
    for part in parts:
        if isinstance(part, str):
            groups.append(())
        else:
            groups[-1] += part
    return Template(tuple(groups))
