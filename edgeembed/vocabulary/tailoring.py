"""A tailored vocabulary: WordPiece trained on the corpus that the student is for."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from edgeembed.vocabulary.wordpiece import PREFIX

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""At ids 0 to 4; padding at 0, as BERT has it."""

_UNKNOWN = SPECIAL_TOKENS[1]

_MAX_CHARACTERS = 1000
"""Rarer characters become [UNK]: each would cost two embedding rows for a handful of uses."""

_MIN_USES = 2
"""A piece that occurs once teaches the student nothing that its own pieces do not."""


def train_vocabulary(sentences: Sequence[str], size: int, *, lowercase: bool = True) -> Tokenizer:
    """Give a WordPiece tokenizer trained on a corpus, the same one for the same corpus and size.

    Args:
        sentences: The corpus.
        size: The most tokens that it may have, special ones and characters included; a small corpus fills
            fewer.
        lowercase: Whether case and accents are folded, as in `bert-base-uncased`: a small vocabulary then
            holds one form of a word and not three.

    Returns:
        A tokenizer with BERT's normaliser, pre-tokenizer and post-processor (`[CLS] text [SEP]`) that neither
        truncates nor pads; special tokens at ids 0 to 4.

    Raises:
        InputError: If there are no sentences, or `size` has no room for special tokens and characters.
    """
    tokenizer = _bert_tokenizer({}, lowercase=lowercase)
    alphabet = _find_alphabet(sentences, tokenizer)
    _expect_room(size, alphabet)
    # The trainer numbers continuations in the order of a randomly seeded hash table, and ids decide between
    # merges of equal count. Listed among the special tokens they get fixed ids, and the result is the same
    # each time.
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=_MIN_USES,
        special_tokens=[*SPECIAL_TOKENS, *alphabet.continuations],
        initial_alphabet=alphabet.characters,
        limit_alphabet=len(alphabet.characters),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer, length=len(sentences))
    return _bert_tokenizer(tokenizer.get_vocab(), lowercase=lowercase)


@dataclass(frozen=True)
class _Alphabet:
    characters: list[str]
    continuations: list[str]


def _find_alphabet(sentences: Sequence[str], tokenizer: Tokenizer) -> _Alphabet:
    """Find the corpus's characters, and those of them that continue a word."""
    runs = Counter(run for text in sentences for run in tokenizer.normalizer.normalize_str(text).split())
    uses: Counter[str] = Counter()
    continuing: set[str] = set()
    for run, count in runs.items():
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(run):
            for character in word:
                uses[character] += count
            continuing.update(word[1:])
    characters = sorted(sorted(uses, key=lambda character: (-uses[character], character))[:_MAX_CHARACTERS])
    return _Alphabet(characters, [PREFIX + character for character in characters if character in continuing])


def _expect_room(size: int, alphabet: _Alphabet) -> None:
    if not alphabet.characters:
        raise InputError("there is no text to train a vocabulary on; expected at least one sentence")
    characters, continuations = len(alphabet.characters), len(alphabet.continuations)
    needed = len(SPECIAL_TOKENS) + characters + continuations
    if size < needed:
        raise InputError(
            f"a vocabulary of {size} tokens was asked for; expected at least {needed} for this corpus: "
            f"{len(SPECIAL_TOKENS)} special tokens, {characters} characters and {continuations} continuations"
        )


def _bert_tokenizer(vocabulary: dict[str, int], *, lowercase: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=_UNKNOWN, continuing_subword_prefix=PREFIX))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=PREFIX)
    if vocabulary:
        tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
        )
    return tokenizer
