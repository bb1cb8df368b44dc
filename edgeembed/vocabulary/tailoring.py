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

_COVERED = 0.9999
"""Share of a language's text that its characters in a multilingual vocabulary make up: hundreds for an alphabet,
thousands for Chinese, which a limit for all languages together would starve."""

_MIN_USES = 2
"""A piece that occurs once teaches the student nothing that its own pieces do not."""


def train_vocabulary(
    sentences: Sequence[str], size: int, *, lowercase: bool = True, strip_accents: bool | None = None
) -> Tokenizer:
    """Give a WordPiece tokenizer trained on a corpus, the same one for the same corpus and size.

    Args:
        sentences: The corpus.
        size: The most tokens that it may have, special ones and characters included; a small corpus fills
            fewer.
        lowercase: Whether case and accents are folded, as in `bert-base-uncased`: a small vocabulary then
            holds one form of a word and not three.
        strip_accents: Whether accents are folded, where it is not as `lowercase` says.

    Returns:
        A tokenizer with BERT's normaliser, pre-tokenizer and post-processor (`[CLS] text [SEP]`) that neither
        truncates nor pads; special tokens at ids 0 to 4.

    Raises:
        InputError: If there are no sentences, or `size` has no room for special tokens and characters.
    """
    normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    found = _count_characters(sentences, normalizer)
    return _train(sentences, size, _Alphabet(found.most_used(_MAX_CHARACTERS), found.continuing), normalizer)


def train_multilingual_vocabulary(
    languages: Sequence[Sequence[str]], size: int, *, lowercase: bool = False, strip_accents: bool | None = None
) -> Tokenizer:
    """Give a WordPiece tokenizer trained on text of several languages, each with characters of its own.

    Args:
        languages: The text of each language, as much of each as it is to count.
        size: As for `train_vocabulary`.
        lowercase: As for `train_vocabulary`; case and accents are kept, as in `bert-base-multilingual-cased`, because
            in other scripts marks that count as accents are letters.
        strip_accents: As for `train_vocabulary`.

    Returns:
        A tokenizer as `train_vocabulary` gives it. Its characters are, of each language, the most used ones that make
        up 99.99 % of its text.

    Raises:
        InputError: As for `train_vocabulary`.
    """
    normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    found = [_count_characters(sentences, normalizer) for sentences in languages]
    alphabet = _Alphabet(
        set().union(*(each.covering(_COVERED) for each in found)), set().union(*(each.continuing for each in found))
    )
    return _train([text for sentences in languages for text in sentences], size, alphabet, normalizer)


@dataclass(frozen=True)
class _Characters:
    """A text's characters.

    Attributes:
        uses: How often each is used.
        continuing: Those that continue a word.
    """

    uses: Counter[str]
    continuing: set[str]

    def most_used(self, count: int) -> set[str]:
        return set(self._ranked()[:count])

    def covering(self, share: float) -> set[str]:
        chosen, missing = set(), share * self.uses.total()
        for character in self._ranked():
            if missing <= 0:
                break
            chosen.add(character)
            missing -= self.uses[character]
        return chosen

    def _ranked(self) -> list[str]:
        return sorted(self.uses, key=lambda character: (-self.uses[character], character))


@dataclass(frozen=True)
class _Alphabet:
    """The characters of a vocabulary.

    Attributes:
        characters: All of them.
        continuing: Characters that continue a word, and perhaps others of the text.
    """

    characters: set[str]
    continuing: set[str]

    @property
    def continuations(self) -> list[str]:
        return [PREFIX + character for character in sorted(self.characters & self.continuing)]


def _count_characters(sentences: Sequence[str], normalizer: normalizers.Normalizer) -> _Characters:
    words = pre_tokenizers.BertPreTokenizer()
    runs = Counter(run for text in sentences for run in normalizer.normalize_str(text).split())
    uses: Counter[str] = Counter()
    continuing: set[str] = set()
    for run, count in runs.items():
        for word, _ in words.pre_tokenize_str(run):
            for character in word:
                uses[character] += count
            continuing.update(word[1:])
    return _Characters(uses, continuing)


def _train(sentences: Sequence[str], size: int, alphabet: _Alphabet, normalizer: normalizers.Normalizer) -> Tokenizer:
    _expect_room(size, alphabet)
    # The trainer numbers continuations in the order of a randomly seeded hash table, and ids decide between
    # merges of equal count. Listed among the special tokens they get fixed ids, and the result is the same
    # each time.
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=_MIN_USES,
        special_tokens=[*SPECIAL_TOKENS, *alphabet.continuations],
        initial_alphabet=sorted(alphabet.characters),
        limit_alphabet=len(alphabet.characters),
        show_progress=False,
    )
    tokenizer = _bert_tokenizer({}, normalizer)
    tokenizer.train_from_iterator(sentences, trainer, length=len(sentences))
    return _bert_tokenizer(tokenizer.get_vocab(), normalizer)


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


def _bert_tokenizer(vocabulary: dict[str, int], normalizer: normalizers.Normalizer) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=_UNKNOWN, continuing_subword_prefix=PREFIX))
    tokenizer.normalizer = normalizer
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
