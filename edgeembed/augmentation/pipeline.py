"""Augmentation of a corpus: variants of its sentences by synonym substitution and back-translation."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.report import Report
from edgeembed_runtime.storage.atomic import atomic_file

from edgeembed.arguments import check_argument_types, check_integer, check_output, check_path
from edgeembed.augmentation.synonyms import SynonymSubstitution, Variant
from edgeembed.augmentation.variants import Method, stored_variants
from edgeembed.augmentation.wordnet import read_wordnet
from edgeembed.corpus.filtering import CorpusCounts
from edgeembed.corpus.inputs import CorpusLike, corpus_paths
from edgeembed.corpus.reading import gather_corpus
from edgeembed.progress import Reporter, SilentReporter

SUBSTITUTED_SHARE = 0.3
"""Share of a sentence's words that nlpaug replaces, which HPD uses (section 4.3)."""

_MAX_SAMPLES = 10


@dataclass(frozen=True)
class Sample:
    """A sentence and one of its variants."""

    original: str
    variant: str


@dataclass(frozen=True)
class MethodReport:
    """The variants that one method generated.

    Attributes:
        method: `synonyms` or `back_translation`.
        made: New sentences. With the next two counts they are all variants.
        unchanged: Dropped variants that were empty or equal to their sentence.
        duplicates: Dropped variants that equal another sentence or variant.
        reused_sentences: Sentences whose variants were in the cache.
        substituted_words: Mean number of substituted words in a new sentence; None for back-translation.
        samples: Some new sentences, evenly spaced.
        seconds: Wall-clock time in seconds.
    """

    method: str
    made: int
    unchanged: int
    duplicates: int
    reused_sentences: int
    substituted_words: float | None
    samples: tuple[Sample, ...]
    seconds: float


@dataclass(frozen=True)
class AugmentationSummary(Report):
    """Counts of an augmentation.

    Attributes:
        originals: Distinct sentences before augmentation.
        sentences: Sentences after augmentation, the originals included.
        methods: The variants that each method generated.
    """

    originals: int
    sentences: int
    methods: tuple[MethodReport, ...]

    def __str__(self) -> str:
        """Return the counts in one line."""
        made = ", ".join(f"{report.made:,} by {_title(report.method)}" for report in self.methods)
        return f"{self.originals:,} sentences made into {self.sentences:,}: {made}"


@dataclass(frozen=True)
class AugmentedSentences:
    """Sentences with their variants.

    Attributes:
        sentences: The distinct originals in their order, then the new sentences.
        report: Counts.
    """

    sentences: list[str]
    report: AugmentationSummary


@dataclass(frozen=True)
class AugmentationReport(Report):
    """The result of `augment`.

    Attributes:
        path: The text file that was written.
        written: Sentences in the file.
        corpus: How many texts of the corpus were read, kept and dropped.
        originals: Distinct sentences before augmentation.
        sentences: Sentences after augmentation, the originals included.
        methods: The variants that each method generated.
    """

    path: Path
    written: int
    corpus: CorpusCounts
    originals: int
    sentences: int
    methods: tuple[MethodReport, ...]

    def __str__(self) -> str:
        """Return the counts, and for each method its counts and samples."""
        summary = AugmentationSummary(self.originals, self.sentences, self.methods)
        return "\n\n".join([f"{self.path}: {self.written:,} sentences; {summary}", *map(_describe, self.methods)])


@check_argument_types
def augment(  # noqa: PLR0913  # one parameter for each option
    corpus: CorpusLike,
    out: str | os.PathLike[str],
    *,
    wordnet: str | os.PathLike[str] | None = None,
    back_translation: Sequence[str | os.PathLike[str]] | None = None,
    variants: int = 1,
    substituted_share: float = SUBSTITUTED_SHARE,
    only_new: bool = False,
    limit: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    seed: int = 0,
    force: bool = False,
    reporter: Reporter | None = None,
) -> AugmentationReport:
    """Write a corpus of English sentences with variants of them: synonyms, back-translations or both.

    An interrupted call continues where it stopped when it is repeated.

    Args:
        corpus: The sentences, see `edgeembed.corpus.inputs.open_corpus`.
        out: The text file to write, one sentence a line.
        wordnet: The folder of a WordNet, to replace words by synonyms.
        back_translation: Two translation models, folders or hub ids: from English into another language, and back.
        variants: Variants of each sentence by synonyms.
        substituted_share: Share of a sentence's words to replace by synonyms, more than 0 and at most 1.
        only_new: Whether to write only the new sentences, without the originals.
        limit: Use a random sample of this many sentences. None uses all.
        cache: The folder that keeps variants; `out` with `.cache` appended by default.
        seed: The seed of the sample and of the substitutions.
        force: Whether to replace an existing `out`.
        reporter: Receives progress.

    Returns:
        The number of sentences written, and how many each method made.

    Raises:
        InputError: If an argument is invalid, the corpus, WordNet or a model cannot be read, or `out` exists. Nothing
            is written then.
        MissingExtraError: If WordNet's files need nltk and it is not installed.
    """
    reporter = reporter or SilentReporter()
    if not wordnet and back_translation is None:
        raise InputError("no augmentation was chosen; expected wordnet, back_translation or both")
    if limit is not None:
        check_integer("limit", limit, minimum=1)
    check_integer("seed", seed)
    path = check_output(out, force=force, inputs=corpus_paths(corpus))
    folder = path.with_name(f"{path.name}.cache") if cache is None else check_path("cache", cache)
    methods = augmentation_methods(
        wordnet=wordnet,
        back_translation=back_translation,
        variants=variants,
        substituted_share=substituted_share,
        seed=seed,
    )

    gathered = gather_corpus(corpus, limit=limit, seed=seed)
    reporter.note(f"corpus: {gathered.counts}")
    augmented = augment_sentences(gathered.sentences, methods, folder, reporter=reporter)
    summary = augmented.report
    written = augmented.sentences[summary.originals if only_new else 0 :]
    with atomic_file(path, force=force) as file:
        file.write_text("\n".join(written) + "\n", encoding="utf-8")
    return AugmentationReport(
        path, len(written), gathered.counts, summary.originals, summary.sentences, summary.methods
    )


def augmentation_methods(
    *,
    wordnet: str | os.PathLike[str] | None = None,
    back_translation: Sequence[str | os.PathLike[str]] | None = None,
    variants: int = 1,
    substituted_share: float = SUBSTITUTED_SHARE,
    seed: int = 0,
) -> list[Method]:
    """Return the methods of augmentation that were chosen, in the order of the parameters.

    Args:
        wordnet: The folder of a WordNet, for synonyms; None or empty for no synonyms.
        back_translation: Two translation models, there and back; None for no back-translation.
        variants: Variants of each sentence by synonyms.
        substituted_share: Share of a sentence's words to replace by synonyms, more than 0 and at most 1.
        seed: The seed of the substitutions.

    Raises:
        InputError: If an argument is invalid, or WordNet or a model cannot be read.
        MissingExtraError: If WordNet's files need nltk and it is not installed.
    """
    if wordnet and not isinstance(wordnet, str | os.PathLike):
        raise InputError(f"wordnet is {short_repr(wordnet)}; expected the folder of a WordNet")
    check_integer("variants", variants, minimum=1)
    if not isinstance(substituted_share, int | float) or not 0 < substituted_share <= 1:
        raise InputError(
            f"substituted_share is {short_repr(substituted_share)}; expected a number above 0 and at most 1"
        )
    is_pair = isinstance(back_translation, list | tuple) and len(back_translation) == 2 and all(back_translation)
    if back_translation is not None and not is_pair:
        raise InputError(
            f"back_translation is {short_repr(back_translation)}; expected two models: one that translates into "
            "another language, and one that translates back"
        )
    methods: list[Method] = []
    if back_translation is not None:
        from edgeembed.augmentation.back_translation import BackTranslation

        there, back = back_translation
        methods.append(BackTranslation(os.fspath(there), os.fspath(back)))
    if wordnet:
        read = read_wordnet(Path(wordnet))
        methods.insert(0, SynonymSubstitution(read, share=substituted_share, variants=variants, seed=seed))
    return methods


def augment_sentences(
    sentences: Sequence[str], methods: Sequence[Method], cache: Path, *, reporter: Reporter | None = None
) -> AugmentedSentences:
    """Add variants of sentences, as HPD does (section 4.3).

    Every method works on the originals. A sentence's synonyms depend on the sentence, the settings and the seed, not
    on its position or the other sentences.

    Args:
        sentences: English sentences; duplicates are dropped.
        methods: The methods, see `augmentation_methods`. Without any, the sentences are returned.
        cache: The folder that keeps variants; several corpora may share it.
        reporter: Receives progress.

    Raises:
        InputError: If a model cannot be loaded, or the cache cannot be written.
    """
    originals = list(dict.fromkeys(sentences))
    together = dict.fromkeys(originals)
    reports = []
    for method in methods:
        started = time.perf_counter()
        with (reporter or SilentReporter()).step(_title(method.name), len(originals), "sentences") as advance:
            variants, reused = stored_variants(method, originals, cache, advance)
        reports.append(_add_variants(method, originals, variants, together, reused, started))
    return AugmentedSentences(list(together), AugmentationSummary(len(originals), len(together), tuple(reports)))


def _add_variants(
    method: Method,
    originals: Sequence[str],
    variants: Mapping[str, Sequence[Variant]],
    together: dict[str, None],
    reused: int,
    started: float,
) -> MethodReport:
    """Add the new sentences of a method to all sentences, and count them."""
    made: list[tuple[str, Variant]] = []
    unchanged = duplicates = 0
    for original in originals:
        for variant in variants[original]:
            if variant.text in {"", original}:
                unchanged += 1
            elif variant.text in together:
                duplicates += 1
            else:
                together[variant.text] = None
                made.append((original, variant))
    counts = [variant.substituted for _, variant in made if variant.substituted is not None]
    step = -(-len(made) // _MAX_SAMPLES) or 1
    return MethodReport(
        method=method.name,
        made=len(made),
        unchanged=unchanged,
        duplicates=duplicates,
        reused_sentences=reused,
        substituted_words=round(fmean(counts), 3) if counts else None,
        samples=tuple(Sample(original, variant.text) for original, variant in made[::step]),
        seconds=round(time.perf_counter() - started, 3),
    )


def _describe(report: MethodReport) -> str:
    per_sentence = f", {report.substituted_words} words a sentence" if report.substituted_words else ""
    counts = (
        f"{_title(report.method)}: {report.made:,} made{per_sentence}; "
        f"{report.unchanged:,} unchanged and {report.duplicates:,} duplicate ones dropped; "
        f"{report.reused_sentences:,} sentences found in the cache; {report.seconds:.1f} s"
    )
    return "\n".join([counts, *(f"  {sample.original}\n  -> {sample.variant}" for sample in report.samples)])


def _title(method: str) -> str:
    return method.replace("_", "-")
