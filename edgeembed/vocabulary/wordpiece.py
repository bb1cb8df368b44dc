"""WordPiece tokenizers: train one on a corpus, or trim the vocabulary of an existing one."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgeembed_exporters.reduction.coverage import tokenizer_json
from edgeembed_exporters.reduction.tokenizer_trimming import trim_tokenizer
from edgeembed_exporters.truncation import without_truncation
from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from edgeembed.vocabulary.word_counts import WordCounts

PREFIX = "##"
"""Prefix of a token that continues a word."""

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""Special tokens, at ids 0 to 4 as in BERT."""

_MAX_CHARACTERS = 1000
"""Number of most frequent characters to keep; rarer ones become [UNK], because each costs two embedding rows."""

_CHARACTER_COVERAGE = 0.9999
"""Share of each language's text that the kept characters must cover. One limit on their number for all languages
together would drop most Chinese characters, of which there are thousands."""

_MIN_FREQUENCY = 2
"""A token that occurs once has too few examples to learn an embedding from."""

MAX_WORDS = 500_000
"""Number of most frequent distinct words to train on, because the trainer needs about a kilobyte of memory for each."""

_REPETITIONS = 1000
"""Occurrences of a word that the trainer is given in one string."""


def train_wordpiece(
    sentences: Iterable[str], size: int, *, lowercase: bool = True, strip_accents: bool | None = None
) -> Tokenizer:
    """Train a WordPiece tokenizer on a corpus. Training is deterministic.

    Memory does not grow with the corpus. Its words are counted exactly, in temporary files if they are many. Training
    uses the 500,000 most frequent distinct words; rarer ones count only for the choice of characters.

    Args:
        sentences: The corpus; it is read once.
        size: Maximum vocabulary size, special tokens and characters included. A small corpus yields fewer tokens.
        lowercase: Whether to lowercase text and strip accents, as `bert-base-uncased` does. A small vocabulary then
            holds one form of each word instead of three.
        strip_accents: Whether to strip accents; None for the same as `lowercase`.

    Returns:
        A tokenizer with BERT's normalizer, pre-tokenizer and post-processor (`[CLS] text [SEP]`), without truncation
        and padding. Special tokens have ids 0 to 4.

    Raises:
        InputError: If there are no sentences, `size` is smaller than the special tokens and characters, or temporary
            files cannot be written.
    """
    normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    with WordCounts(sentences, normalizer) as words:
        found = _count_characters(words)
        return _train([words], size, _Alphabet(found.most_frequent(_MAX_CHARACTERS), found.continuing), normalizer)


def train_multilingual_wordpiece(
    languages: Iterable[Iterable[str]], size: int, *, lowercase: bool = False, strip_accents: bool | None = None
) -> Tokenizer:
    """Train a WordPiece tokenizer on text of several languages.

    For each language, the most frequent characters that cover 99.99 % of its text are kept.

    Args:
        languages: The sentences of each language, sampled in the proportions that they are to have. As for
            `train_wordpiece`, the 500,000 most frequent words of each language are used.
        size: As for `train_wordpiece`.
        lowercase: As for `train_wordpiece`. Off by default, as in `bert-base-multilingual-cased`, because stripping
            accents removes letters in some scripts.
        strip_accents: As for `train_wordpiece`.

    Returns:
        A tokenizer, as from `train_wordpiece`.

    Raises:
        InputError: As for `train_wordpiece`.
    """
    normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    with contextlib.ExitStack() as stack:
        words = [stack.enter_context(WordCounts(sentences, normalizer)) for sentences in languages]
        found = [_count_characters(each) for each in words]
        alphabet = _Alphabet(
            set().union(*(each.covering(_CHARACTER_COVERAGE) for each in found)),
            set().union(*(each.continuing for each in found)),
        )
        return _train(words, size, alphabet, normalizer)


def trim_wordpiece(tokenizer: Tokenizer, sentences: Iterable[str], size: int) -> Tokenizer:
    """Trim a WordPiece vocabulary to the tokens that a corpus uses most, so that their embeddings can be kept.

    Args:
        tokenizer: A WordPiece tokenizer; it is not changed.
        sentences: The corpus.
        size: Number of tokens to keep, special tokens included. Fewer are kept if the vocabulary has fewer that any
            text can produce.

    Returns:
        A tokenizer with the same normalizer, pre-tokenizer and post-processor, without truncation and padding.
        `trim_tokenizer` documents which tokens are kept, and their order.

    Raises:
        InputError: If the tokenizer is not WordPiece, there is no text, or `size` is smaller than the special tokens
            and characters.
    """
    expect_wordpiece(tokenizer, "the tokenizer to trim")
    return trim_tokenizer(without_truncation(tokenizer), sentences, size=size)


def expect_wordpiece(tokenizer: Tokenizer, name: str, advice: str = "choose a BERT-like model") -> dict[str, Any]:
    """Return the JSON description of a tokenizer after checking that it is WordPiece with the prefix `##`.

    Args:
        tokenizer: The tokenizer.
        name: Its name in error messages.
        advice: What to do about it.

    Raises:
        InputError: If it is of another type (BPE, Unigram, WordLevel) or has another prefix.
    """
    description = tokenizer_json(tokenizer)
    model = description["model"]
    if model["type"] != "WordPiece" or model["continuing_subword_prefix"] != PREFIX:
        raise InputError(
            f"{name} is a {model['type']} tokenizer; expected WordPiece with the prefix {PREFIX}: {advice}"
        )
    return description


@dataclass(frozen=True)
class _Characters:
    """Character statistics of a text.

    Attributes:
        counts: Number of occurrences of each character.
        continuing: Characters that occur inside a word, not only at its start.
    """

    counts: Counter[str]
    continuing: set[str]

    def most_frequent(self, count: int) -> set[str]:
        return set(self._ranked()[:count])

    def covering(self, share: float) -> set[str]:
        """Return the most frequent characters that together cover a share of the text."""
        chosen, missing = set(), share * self.counts.total()
        for character in self._ranked():
            if missing <= 0:
                break
            chosen.add(character)
            missing -= self.counts[character]
        return chosen

    def _ranked(self) -> list[str]:
        return sorted(self.counts, key=lambda character: (-self.counts[character], character))


@dataclass(frozen=True)
class _Alphabet:
    """Characters of a vocabulary.

    Attributes:
        characters: The characters, each a token.
        continuing: Characters that occur inside a word; may hold others than `characters`.
    """

    characters: set[str]
    continuing: set[str]

    @property
    def continuations(self) -> list[str]:
        return [PREFIX + character for character in sorted(self.characters & self.continuing)]


def _count_characters(words: WordCounts) -> _Characters:
    counts: Counter[str] = Counter()
    continuing: set[str] = set()
    for word, count in words:
        for character in word:
            counts[character] += count
        continuing.update(word[1:])
    return _Characters(counts, continuing)


def _train(
    languages: Sequence[WordCounts], size: int, alphabet: _Alphabet, normalizer: normalizers.BertNormalizer
) -> Tokenizer:
    _check_size(size, alphabet)
    # The trainer numbers continuations in the order of a randomly seeded hash table, and ids break ties between merges
    # of equal count. Listed among the special tokens, they get fixed ids and training becomes deterministic.
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=_MIN_FREQUENCY,
        special_tokens=[*SPECIAL_TOKENS, *alphabet.continuations],
        initial_alphabet=sorted(alphabet.characters),
        limit_alphabet=len(alphabet.characters),
        show_progress=False,
    )
    tokenizer = Tokenizer(_wordpiece({}))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator((text for words in languages for text in _repeat(words)), trainer)
    return _bert_tokenizer(tokenizer.get_vocab(), normalizer)


def _repeat(words: WordCounts) -> Iterator[str]:
    """Yield each word as often as it occurs, since the trainer takes text and not counts."""
    for word, count in words.most_frequent(MAX_WORDS):
        for start in range(0, count, _REPETITIONS):
            yield " ".join([word] * min(_REPETITIONS, count - start))


def _check_size(size: int, alphabet: _Alphabet) -> None:
    if not alphabet.characters:
        raise InputError("no text to train a vocabulary on; expected at least one sentence")
    characters, continuations = len(alphabet.characters), len(alphabet.continuations)
    needed = len(SPECIAL_TOKENS) + characters + continuations
    if size < needed:
        raise InputError(
            f"the vocabulary size is {size}; expected at least {needed} for this corpus: "
            f"{len(SPECIAL_TOKENS)} special tokens, {characters} characters and {continuations} continuations"
        )


def _bert_tokenizer(vocabulary: dict[str, int], normalizer: normalizers.BertNormalizer) -> Tokenizer:
    tokenizer = Tokenizer(_wordpiece(vocabulary))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=PREFIX)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _wordpiece(vocabulary: dict[str, int]) -> models.WordPiece:
    return models.WordPiece(vocabulary, unk_token="[UNK]", continuing_subword_prefix=PREFIX)
