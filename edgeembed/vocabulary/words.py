"""How many of a text's words a vocabulary holds whole, by how many of its tokens one keeps."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from edgeembed_exporters.tailoring.coverage import unknown_id
from edgeembed_exporters.tailoring.encodings import untruncated
from edgeembed_runtime.errors import InputError
from tokenizers import Encoding, Tokenizer, pre_tokenizers

CURVE_SIZES = tuple(digit * 10**power for power in (3, 4, 5) for digit in (1, 2, 5))
"""Where curves are read off: 1,000, 2,000, 5,000, 10,000 and so on to 500,000 tokens."""

Span = tuple[int, int]


def whole_words(tokenizer: Tokenizer, sentences: Sequence[str], sizes: Iterable[int] = CURVE_SIZES) -> dict[int, float]:
    """Give the share of a text's words that are one token among the first N of a vocabulary.

    A word is what BERT's pre-tokenizer cuts a text into at white space and punctuation, if it holds a letter or a
    digit, whatever kind the tokenizer is of; it counts as often as it stands in the text. WordPiece takes the longest
    token that fits, and a tailored vocabulary has its tokens in the order in which training found them: its first N
    are the vocabulary of size N, and the share is the one that this would reach. The ids of other tokenizers need not
    be in such an order, so that of these the last share alone is certain to mean something.

    Args:
        tokenizer: A tokenizer of any kind; truncation and padding are not applied.
        sentences: The text, best one that the vocabulary was not made from.
        sizes: Numbers of tokens; those above the vocabulary's own are passed over.

    Returns:
        Shares from 0 to 1 by N, in the order of N; the last is for the whole vocabulary.

    Raises:
        InputError: If there is no word in the text.
    """
    whole: Counter[int] = Counter()
    words = 0
    encodings = untruncated(tokenizer).encode_batch(list(sentences), add_special_tokens=False)
    for text, encoding in zip(sentences, encodings, strict=True):
        spans = set(_words(text))
        words += len(spans)
        whole.update(token for token, span in _tokens(text, encoding) if span in spans)
    unknown = unknown_id(tokenizer)
    if unknown is not None:
        del whole[unknown]
    if not words:
        raise InputError("there is no text to measure a vocabulary on; expected at least one word")
    size = tokenizer.get_vocab_size()
    wanted = [*(number for number in sorted(sizes) if number < size), size]
    return {number: sum(whole[token] for token in whole if token < number) / words for number in wanted}


def _words(text: str) -> Iterator[Span]:
    for word, span in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text):
        if any(character.isalnum() for character in word):
            yield span


def _tokens(text: str, encoding: Encoding) -> Iterator[tuple[int, Span]]:
    """Give each token with the characters that it stands for, without the space that some tokenizers add to them."""
    for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
        spaces = len(text[start:end]) - len(text[start:end].lstrip())
        yield token, (start + spaces, end)
