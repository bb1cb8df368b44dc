"""Tokenizers other than BERT's, run by the package `tokenizers`, which is the extra of that name."""

import json

import tokenizers

from edgeembed_runtime.errors import BundleError
from edgeembed_runtime.tokenization.library_validation import check_before_loading, check_loaded
from edgeembed_runtime.tokenization.tokenizer import TextInfo, Tokens, check_limit, max_characters, surrogate_error

# Nearly every text with too many tokens has them within this many characters per token of the limit.
_CHARACTERS_PER_TOKEN = 16
_GROWTH = 4


class LibraryTokenizer:
    """A tokenizer of the package `tokenizers`; it truncates and never pads.

    Args:
        content: The bytes of the bundle's tokenizer.json.
        max_seq_length: The maximum number of tokens, including special tokens.
        where: The file's path, for messages.
        is_pairs: Whether it tokenizes pairs of texts.

    Raises:
        BundleError: If the file is not a tokenizer, or special tokens alone reach the limit.
    """

    def __init__(self, content: bytes, max_seq_length: int, where: str, *, is_pairs: bool = False) -> None:
        check_before_loading(content, where)
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(content)
        except BaseException as error:
            if not _is_library_error(error):
                raise
            raise BundleError(f"{where} is not a tokenizer: {_first_line(error)}; export the bundle again") from error
        check_loaded(self._tokenizer, where)
        check_limit(max_seq_length, self._tokenizer.num_special_tokens_to_add(is_pair=is_pairs), where)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_seq_length)
        self._where = where
        self._limit = max_seq_length
        self._first_cut = max_seq_length * _CHARACTERS_PER_TOKEN
        self._last_cut = max_characters(max_seq_length)
        self._unknown_id: int | None = None
        self._knows_unknown_id = False

    @property
    def vocabulary(self) -> dict[str, int]:
        """The id of each token."""
        vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        return vocabulary

    @property
    def unknown_id(self) -> int | None:
        """The id of the unknown token; None if there is none."""
        if not self._knows_unknown_id:
            model = self._tokenizer.model
            if isinstance(model, tokenizers.models.Unigram):  # has it in its JSON only
                self._unknown_id = json.loads(self._tokenizer.to_str())["model"]["unk_id"]
            elif model.unk_token is not None:
                self._unknown_id = self._tokenizer.token_to_id(model.unk_token)
            self._knows_unknown_id = True
        return self._unknown_id

    def tokenize(self, text: str | tuple[str, str]) -> Tokens:
        """Tokenize a text or a pair, as `Tokenizer` describes."""
        if isinstance(text, tuple):
            first, second = text
            encoding = self._encode(first[: self._last_cut], second[: self._last_cut])
            is_cut = max(map(len, text)) > self._last_cut
        elif len(text) <= self._first_cut:
            encoding, is_cut = self._encode(text), False
        else:
            encoding, _, is_cut = self._encode_beginning(text)
        ids = encoding.ids
        is_truncated = is_cut or (len(ids) == self._limit and bool(encoding.overflowing))
        return Tokens(ids, is_truncated, len(self._unknown_offsets(encoding)) if self.unknown_id in ids else 0)

    def describe(self, text: str) -> TextInfo:
        """Return the tokenization results of a text."""
        encoding, read, is_cut = self._encode_beginning(text)
        pieces = tuple(read[start:end] for start, end in self._unknown_offsets(encoding))
        return TextInfo(len(encoding.ids), is_cut or bool(encoding.overflowing), pieces)

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Return where each token of a text starts and ends, as `Tokenizer` describes."""
        encoding = self._encode(text, add_special_tokens=False)
        return [offsets for part in (encoding, *encoding.overflowing) for offsets in part.offsets]

    def _unknown_offsets(self, encoding: tokenizers.Encoding) -> list[tuple[int, int]]:
        """Return where the unknown tokens of a text start and end, without those that begin or end every text."""
        unknown = self.unknown_id
        tokens = zip(encoding.ids, encoding.special_tokens_mask, encoding.offsets, strict=True)
        return [offsets for token, is_special, offsets in tokens if token == unknown and not is_special]

    def _encode_beginning(self, text: str) -> tuple[tokenizers.Encoding, str, bool]:
        """Return the encoding, the text that was encoded, and whether the text was cut before it was tokenized."""
        if len(text) <= self._first_cut:
            return self._encode(text), text, False
        read, end = text[: self._last_cut], self._first_cut
        while end < len(read):
            encoding = self._encode(read[:end])
            if _is_complete(encoding):
                return encoding, read, False
            end *= _GROWTH
        return self._encode(read), read, len(read) < len(text)

    def _encode(self, text: str, second: str | None = None, *, add_special_tokens: bool = True) -> tokenizers.Encoding:
        try:
            return self._tokenizer.encode(text, second, add_special_tokens=add_special_tokens)
        except TypeError as error:
            raise surrogate_error(text + (second or "")) from error
        except BaseException as error:
            if not _is_library_error(error):
                raise
            raise BundleError(
                f"cannot be read by {self._where}: {_first_line(error)}; export the bundle again"
            ) from error


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
