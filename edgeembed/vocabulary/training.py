"""Train a vocabulary on a corpus, or trim a model's to it, and measure what it covers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgeembed_exporters.reduction.coverage import measure_coverage
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_file
from tokenizers import Tokenizer

from edgeembed.arguments import check_argument_types, check_integer, check_output
from edgeembed.corpus import CorpusCounts, LanguageSample, held_out_count, held_out_rows, stream_corpus
from edgeembed.corpus.inputs import CorpusLike, corpus_paths, open_corpus
from edgeembed.corpus.languages import MAX_HELD_OUT, SAMPLE_SIZE, label_languages, sample_languages
from edgeembed.models import ModelLike, load_tokenizer, model_name
from edgeembed.progress import Reporter, SilentReporter
from edgeembed.vocabulary.coverage import measure_language_coverage
from edgeembed.vocabulary.report import VocabularyReport
from edgeembed.vocabulary.wordpiece import train_multilingual_wordpiece, train_wordpiece, trim_wordpiece

DEFAULT_SMOOTHING = 0.7
"""Exponent of the languages' shares, as in multilingual BERT."""


@dataclass(frozen=True)
class _Text:
    """The text of a vocabulary.

    Attributes:
        training: Sentences to train on; they can be read once.
        measured: Sentences to measure coverage on: the held-out ones, or all if there are too few to hold any out.
        counts: How many texts were read, kept and dropped.
        languages: The sample of each language, if the corpus has languages.
    """

    training: Iterable[str]
    measured: list[str]
    counts: CorpusCounts
    languages: tuple[LanguageSample, ...] = ()


@check_argument_types
def train_vocabulary(  # noqa: PLR0913  # one parameter per choice
    corpus: CorpusLike | Mapping[str, CorpusLike],
    out: str | os.PathLike[str],
    *,
    size: int,
    smoothing: float | None = None,
    trim: ModelLike | None = None,
    lowercase: bool | None = None,
    strip_accents: bool | None = None,
    measure: bool = True,
    against: ModelLike | Sequence[ModelLike] = (),
    limit: int | None = None,
    seed: int = 0,
    force: bool = False,
    reporter: Reporter | None = None,
) -> VocabularyReport:
    """Train a WordPiece vocabulary on a corpus, or trim a model's vocabulary to it, and measure its coverage.

    A tenth of the sentences, at most 2,000, is held out; coverage is measured on those. If the corpus has languages,
    the vocabulary is trained on a sample in which each language has its smoothed share.

    Memory does not grow with the corpus: its sentences are copied to temporary files. See `stream_corpus` and
    `train_wordpiece`.

    Args:
        corpus: The corpus. Sources labeled with languages (`["de=news.txt", "en=wiki.txt"]`), or a mapping from
            language to corpus, train a multilingual vocabulary.
        out: The `tokenizer.json` to write.
        size: Maximum vocabulary size, special tokens included.
        smoothing: Exponent of the languages' shares: 1 keeps them, 0 makes them equal. None for 0.7.
        trim: Trim the vocabulary of this model instead of training one.
        lowercase: Whether to lowercase text; None for yes without languages, no with languages.
        strip_accents: Whether to strip accents; None for the same as `lowercase`, and for no with languages.
        measure: Whether to measure coverage.
        against: Models whose vocabularies are measured too.
        limit: Maximum number of sentences, a random sample; None for all, or for 1,000,000 with languages.
        seed: Seed of all random samples.
        force: Whether to replace an existing file at `out`.
        reporter: Receives progress; None for silence.

    Returns:
        The report; its field `path` is the tokenizer file.

    Raises:
        InputError: If an argument is wrong, a source or model cannot be read, the text is too small for `size`, or
            `out` exists and `force` is not set, or the temporary files cannot be written. Nothing is written then.
    """
    reporter = reporter or SilentReporter()
    languages = _languages(corpus)
    check_integer("size", size, 1)
    if limit is not None:
        check_integer("limit", limit, 1)
    check_integer("seed", seed, 0)
    corpora: list[Any] = list(languages.values()) if languages else [corpus]
    for each in corpora:
        open_corpus(each)
    out = check_output(out, force=force, inputs=[path for each in corpora for path in corpus_paths(each)])
    if smoothing is not None and not languages:
        raise InputError(
            f"smoothing is {smoothing:g}, but the corpus has no languages; expected a label before every source, such "
            "as en=FILE"
        )
    if smoothing is not None and not 0 <= smoothing <= 1:
        raise InputError(f"smoothing is {smoothing:g}; expected 0, which makes the languages' shares equal, to 1")
    if trim is not None and not (lowercase is None and strip_accents is None):
        raise InputError(
            "trimming keeps case and accents as the model has them; expected neither an option for case nor one for "
            "accents beside trim"
        )
    peers = _load_peers(trim, against)
    with contextlib.ExitStack() as stack:
        with reporter.step("corpus"):
            if languages:
                text = _sample(languages, DEFAULT_SMOOTHING if smoothing is None else smoothing, limit, seed)
            else:
                text = stack.enter_context(_stream(corpus, limit, seed))
        reporter.note(f"corpus: {text.counts}")
        with reporter.step("vocabulary"):
            if trim is None:
                tokenizer = _train(text, size, lowercase=lowercase, strip_accents=strip_accents)
            else:
                tokenizer = trim_wordpiece(peers[model_name(trim)], text.training, size)
    report = VocabularyReport(out, tokenizer.get_vocab_size(), text.counts, {}, ())
    if measure:
        with reporter.step("coverage"):
            report = _measure(report, text, {str(out): tokenizer, **peers})
    with atomic_file(out, force=force) as path:
        path.write_text(tokenizer.to_str(pretty=True), encoding="utf-8")
    return report


def _languages(corpus: CorpusLike | Mapping[str, CorpusLike]) -> dict[str, CorpusLike]:
    if isinstance(corpus, Mapping):
        if not corpus:
            raise InputError("the corpus is an empty mapping; expected a corpus for at least one language")
        return dict(corpus)
    return dict(label_languages(corpus))


def _load_peers(trim: ModelLike | None, against: ModelLike | Sequence[ModelLike]) -> dict[str, Tokenizer]:
    models = list(against) if isinstance(against, list | tuple) else [against]
    return {model_name(model): load_tokenizer(model) for model in [*([] if trim is None else [trim]), *models]}


@contextlib.contextmanager
def _stream(corpus: CorpusLike, limit: int | None, seed: int) -> Iterator[_Text]:
    with stream_corpus(corpus, limit=limit, seed=seed) as sentences:
        rows = held_out_rows(len(sentences), held_out_count(len(sentences), MAX_HELD_OUT), seed)
        training = (text for row, text in enumerate(sentences) if row not in rows)
        measured = [text for row, text in enumerate(sentences) if row in rows or not rows]
        yield _Text(training, measured, sentences.counts)


def _sample(languages: Mapping[str, CorpusLike], smoothing: float, limit: int | None, seed: int) -> _Text:
    size = SAMPLE_SIZE if limit is None else limit
    sampled = sample_languages(languages, smoothing=smoothing, size=size, seed=seed)
    training = [text for sample in sampled.languages for text in sample.training]
    held_out = [text for sample in sampled.languages for text in sample.held_out]
    return _Text(training, held_out or training, sampled.counts, sampled.languages)


def _train(text: _Text, size: int, *, lowercase: bool | None, strip_accents: bool | None) -> Tokenizer:
    is_multilingual = bool(text.languages)
    lowercase = not is_multilingual if lowercase is None else lowercase
    if strip_accents is None:
        strip_accents = lowercase and not is_multilingual
    # None is BERT's rule, that accents are stripped if text is lowercased; tokenizer.json then says so too.
    normalizer_value = None if strip_accents == lowercase else strip_accents
    if is_multilingual:
        samples = [sample.training for sample in text.languages]
        return train_multilingual_wordpiece(samples, size, lowercase=lowercase, strip_accents=normalizer_value)
    return train_wordpiece(text.training, size, lowercase=lowercase, strip_accents=normalizer_value)


def _measure(report: VocabularyReport, text: _Text, tokenizers: Mapping[str, Tokenizer]) -> VocabularyReport:
    return VocabularyReport(
        report.path,
        report.size,
        report.corpus,
        {name: measure_coverage(tokenizer, text.measured) for name, tokenizer in tokenizers.items()},
        measure_language_coverage(text.languages, tokenizers),
    )
