"""Coverage of a vocabulary: the rate of words that are one token, and coverage by language."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgeembed_exporters.reduction.coverage import Coverage, measure_coverage, unknown_id
from edgeembed_exporters.truncation import without_truncation
from edgeembed_runtime.errors import InputError
from tokenizers import Encoding, Tokenizer, pre_tokenizers

from edgeembed.corpus.languages import LanguageSample

CURVE_SIZES = tuple(digit * 10**power for power in (3, 4, 5) for digit in (1, 2, 5))
"""Vocabulary sizes of the whole-word curve: 1,000, 2,000, 5,000, 10,000 and so on up to 500,000."""

_Span = tuple[int, int]


def measure_whole_words(
    tokenizer: Tokenizer, sentences: Sequence[str], sizes: Iterable[int] = CURVE_SIZES
) -> dict[int, float]:
    """Measure the share of words that are a single token, among the first N tokens of a vocabulary, for several N.

    Words are split by BERT's pre-tokenizer, for every kind of tokenizer; those without a letter or digit are skipped.
    The first N tokens of a trained WordPiece vocabulary are the vocabulary of size N, so one large vocabulary shows
    what smaller ones would reach. The ids of other tokenizers may be in any order; only their last value is meaningful.

    Args:
        tokenizer: A tokenizer of any type; truncation and padding are not applied.
        sentences: The text; best held-out text.
        sizes: Numbers of tokens, N. Those above the vocabulary size are skipped.

    Returns:
        Shares from 0 to 1 by N, in ascending order of N; the last N is the vocabulary size.

    Raises:
        InputError: If there is no word in the text.
    """
    whole: Counter[int] = Counter()
    words = 0
    encodings = without_truncation(tokenizer).encode_batch(list(sentences), add_special_tokens=False)
    for text, encoding in zip(sentences, encodings, strict=True):
        spans = set(_words(text))
        words += len(spans)
        whole.update(token for token, span in _tokens(text, encoding) if span in spans)
    unknown = unknown_id(tokenizer)
    if unknown is not None:
        del whole[unknown]
    if not words:
        raise InputError("no text to measure a vocabulary on; expected at least one word")
    size = tokenizer.get_vocab_size()
    cuts = [*(cut for cut in sorted(sizes) if cut < size), size]
    return {cut: sum(whole[token] for token in whole if token < cut) / words for cut in cuts}


@dataclass(frozen=True)
class LanguageCoverage:
    """A language's share of the text, and the coverage of vocabularies on its held-out sentences.

    Attributes:
        language: Label of the language.
        text_sentences: Number of sentences in the text, repeated ones included.
        text_share: Their share of the text of all languages, 0 to 1.
        sample_share: The language's smoothed share of the sample, 0 to 1.
        sample_sentences: Number of sentences that the vocabulary is trained on, repeated ones included.
        distinct_sentences: Number of distinct sentences among them.
        held_out_sentences: Number of other distinct sentences, held out to measure on.
        coverage: Coverage of each vocabulary, by its name.
        whole_words: Curve of `measure_whole_words` of each vocabulary, by its name.
    """

    language: str
    text_sentences: int
    text_share: float
    sample_share: float
    sample_sentences: int
    distinct_sentences: int
    held_out_sentences: int
    coverage: dict[str, Coverage]
    whole_words: dict[str, dict[int, float]]


def measure_language_coverage(
    samples: Sequence[LanguageSample], tokenizers: Mapping[str, Tokenizer]
) -> tuple[LanguageCoverage, ...]:
    """Measure vocabularies on the held-out sentences of each language.

    Args:
        samples: The sample of each language. If none of its sentences are held out, all are measured.
        tokenizers: Tokenizers by name.
    """
    return tuple(_measure_language(sample, tokenizers) for sample in samples)


def _measure_language(sample: LanguageSample, tokenizers: Mapping[str, Tokenizer]) -> LanguageCoverage:
    sentences = sample.held_out or sample.sentences
    return LanguageCoverage(
        language=sample.language,
        text_sentences=sample.text_sentences,
        text_share=sample.text_share,
        sample_share=sample.sample_share,
        sample_sentences=sample.uses,
        distinct_sentences=len(sample.sentences),
        held_out_sentences=len(sample.held_out),
        coverage={name: measure_coverage(tokenizer, sentences) for name, tokenizer in tokenizers.items()},
        whole_words={name: measure_whole_words(tokenizer, sentences) for name, tokenizer in tokenizers.items()},
    )


def _words(text: str) -> Iterator[_Span]:
    for word, span in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text):
        if any(character.isalnum() for character in word):
            yield span


def _tokens(text: str, encoding: Encoding) -> Iterator[tuple[int, _Span]]:
    """Yield each token with its character span, without the leading space that some tokenizers include."""
    for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
        spaces = len(text[start:end]) - len(text[start:end].lstrip())
        yield token, (start + spaces, end)
