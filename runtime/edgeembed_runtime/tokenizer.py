"""Tokenize texts in bounded time, whatever their length."""

import json
from dataclasses import dataclass
from typing import NamedTuple

import tokenizers

from edgeembed_runtime.errors import BundleError, InputError
from edgeembed_runtime.long_texts import Shorten, make_shortener
from edgeembed_runtime.tokenizer_validation import check_before_loading, check_loaded

# Nearly every text with too many tokens has them within this many characters per token of the limit.
_CHARACTERS_PER_TOKEN = 16
_GROWTH = 4
# The maximum number of characters that the tokenizer reads: enough unless a text has words of thousands of characters.
_MAX_CHARACTERS_PER_TOKEN = 256
_MAX_CHARACTERS = 2**16


@dataclass(frozen=True)
class TextInfo:
    """The tokenization results of a text.

    Attributes:
        tokens: The number of tokens read, including special tokens.
        truncated: Whether the end of the text was not read.
        unknown: The pieces of the text without a token in the vocabulary, in order. In a text of thousands of
            characters, very long runs of one character are shortened.
    """

    tokens: int
    truncated: bool
    unknown: tuple[str, ...]


class Tokens(NamedTuple):
    """The tokens of a text.

    Attributes:
        ids: Token ids, including special tokens.
        truncated: Whether the end of the text was cut off.
    """

    ids: list[int]
    truncated: bool


class Tokenizer:
    """The tokenizer of a bundle; it truncates and never pads.

    Args:
        content: The bytes of the bundle's tokenizer.json.
        max_seq_length: The maximum number of tokens, including special tokens.
        where: The file's path, for messages.

    Raises:
        BundleError: If the file is not a tokenizer, or special tokens alone reach the limit.
    """

    def __init__(self, content: bytes, max_seq_length: int, where: str) -> None:
        check_before_loading(content, where)
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(content)
        except BaseException as error:
            if not _is_library_error(error):
                raise
            raise BundleError(f"{where} is not a tokenizer: {_first_line(error)}; export the bundle again") from error
        check_loaded(self._tokenizer, where)
        special = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        if max_seq_length <= special:
            raise BundleError(
                f"{where} adds {special} special tokens, expected fewer than max_seq_length, which is "
                f"{max_seq_length}; export the bundle again"
            )
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_seq_length)
        self._where = where
        self._limit = max_seq_length
        self._first_cut = max_seq_length * _CHARACTERS_PER_TOKEN
        self._last_cut = max(max_seq_length * _MAX_CHARACTERS_PER_TOKEN, _MAX_CHARACTERS)
        self._shorten: Shorten | None = None
        self._unknown_id: int | None = None
        self._knows_unknown_id = False

    def tokenize(self, text: str) -> Tokens:
        """Tokenize a text.

        Only the beginning of a long text is tokenized, as far as is needed to fill the limit; the tokens are those of
        the whole text. The tokenizer reads at most 256 characters for each token of the limit, or 65,536 if that is
        more. Runs of white space and of one character are shortened first, if that changes no token (see `long_texts`).
        A text that is still longer counts as truncated.

        Args:
            text: The text.

        Returns:
            The tokens.

        Raises:
            InputError: If the text contains half of a surrogate pair, which is not valid Unicode.
            BundleError: If this tokenizer cannot read the text.
        """
        if len(text) <= self._first_cut:
            encoding, is_cut = self._encode(text), False
        else:
            encoding, _, is_cut = self._encode_beginning(text)
        ids = encoding.ids
        return Tokens(ids, is_cut or (len(ids) == self._limit and bool(encoding.overflowing)))

    def describe(self, text: str) -> TextInfo:
        """Return the tokenization results of a text.

        Raises:
            InputError: As `tokenize` does.
        """
        (encoding, read, is_cut), unknown = self._encode_beginning(text), self._find_unknown_id()
        spans = zip(encoding.ids, encoding.offsets, strict=True)
        pieces = tuple(read[start:end] for token, (start, end) in spans if token == unknown)
        return TextInfo(len(encoding.ids), is_cut or bool(encoding.overflowing), pieces)

    def _encode_beginning(self, text: str) -> tuple[tokenizers.Encoding, str, bool]:
        """Return the encoding, the text that was encoded, and whether the text was cut before it was tokenized."""
        if len(text) <= self._first_cut:
            return self._encode(text), text, False
        encoding = self._encode(text[: self._first_cut])
        if _is_complete(encoding):
            return encoding, text, False
        if self._shorten is None:
            self._shorten = make_shortener(self._tokenizer, self._limit)
        read, is_cut = self._shorten(text, self._last_cut)
        end = self._first_cut * _GROWTH
        while end < len(read):
            encoding = self._encode(read[:end])
            if _is_complete(encoding):
                return encoding, read, False
            end *= _GROWTH
        return self._encode(read), read, is_cut

    def _encode(self, text: str) -> tokenizers.Encoding:
        try:
            return self._tokenizer.encode(text)
        except TypeError as error:
            raise InputError(_surrogate_message(text)) from error
        except BaseException as error:
            if not _is_library_error(error):
                raise
            raise BundleError(
                f"cannot be read by {self._where}: {_first_line(error)}; export the bundle again"
            ) from error

    def _find_unknown_id(self) -> int | None:
        """Return the id of the unknown token, or None. It is looked up on the first call, as few callers need it."""
        if not self._knows_unknown_id:
            model = self._tokenizer.model
            if isinstance(model, tokenizers.models.Unigram):  # has it in its JSON only
                self._unknown_id = json.loads(self._tokenizer.to_str())["model"]["unk_id"]
            elif model.unk_token is not None:
                self._unknown_id = self._tokenizer.token_to_id(model.unk_token)
            self._knows_unknown_id = True
        return self._unknown_id


def _is_library_error(error: BaseException) -> bool:
    """Return whether tokenizers raised an error: an Exception, or a panic of its Rust code, which is not one."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _is_complete(encoding: tokenizers.Encoding) -> bool:
    """Return whether the tokens are final: the last word, which more text could continue, is beyond the limit."""
    if not encoding.overflowing:
        return False
    return _last_word(encoding) < _last_word(encoding.overflowing[-1])


def _last_word(encoding: tokenizers.Encoding) -> int:
    return max((word for word in encoding.word_ids if word is not None), default=-1)


def _surrogate_message(text: str) -> str:
    position = next(i for i, character in enumerate(text) if "\ud800" <= character <= "\udfff")
    return (
        f"contains half of a surrogate pair (U+{ord(text[position]):04X} at character {position}), "
        "expected valid Unicode; decode the text with errors='replace'"
    )
