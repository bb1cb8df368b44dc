"""More sentences out of those that there are."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from edgeembed.augmentation.cache import Method, cached_variants
from edgeembed.augmentation.synonyms import SynonymSubstitution, Variant
from edgeembed.augmentation.wordnet import read_wordnet
from edgeembed.progress import Reporter, SilentReporter
from edgeembed.recipe_settings import AugmentationSettings

_SAMPLES = 10


@dataclass(frozen=True)
class Sample:
    """A sentence and what was made of it."""

    original: str
    variant: str


@dataclass(frozen=True)
class MethodReport:
    """What one method made of the sentences.

    Attributes:
        method: `synonyms` or `back_translation`.
        made: New sentences; with the next two, every variant.
        unchanged: Variants that were empty or equal to their sentence, and dropped.
        duplicates: Variants that equal another sentence or variant, and were dropped.
        reused_sentences: Sentences whose variants were found in the cache.
        substituted_words: Words that differ in a new sentence, on average; None where sentences are made as a whole.
        samples: Some new sentences, evenly spread over all.
        seconds: Wall-clock time.
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
class AugmentationReport:
    """What augmentation did.

    Attributes:
        originals: Distinct sentences that it began with.
        sentences: Sentences that it ended with, the originals among them.
        methods: What each method made.
    """

    originals: int
    sentences: int
    methods: tuple[MethodReport, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain data, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Give the counts in one line of plain words."""
        made = ", ".join(f"{report.made:,} by {report.method.replace('_', '-')}" for report in self.methods)
        return f"{self.originals:,} sentences made into {self.sentences:,}: {made}"


@dataclass(frozen=True)
class Augmented:
    """Sentences and the account of how they were made.

    Attributes:
        sentences: The originals in their order, then the new ones; no two equal.
        report: What was done.
    """

    sentences: list[str]
    report: AugmentationReport


def augment(
    sentences: Sequence[str],
    settings: AugmentationSettings,
    cache: Path,
    *,
    seed: int = 0,
    reporter: Reporter | None = None,
) -> Augmented:
    """Add variants of sentences, as HPD does (section 4.3): synonyms from WordNet, and back-translation.

    A sentence's synonyms depend on it, the settings and the seed alone: not on its place, nor on the other sentences.

    Args:
        sentences: English sentences; equal ones count once.
        settings: Which methods, and with what; without any, the sentences come back as they are.
        cache: Folder for what was made; it may be shared.
        seed: Decides which words are substituted, and by what.
        reporter: Hears of the steps.

    Returns:
        The sentences, the new ones among them, and a report.

    Raises:
        InputError: If WordNet or a model cannot be read, or the cache cannot be written.
        MissingExtraError: If WordNet's files need nltk, and that is not installed.
    """
    originals = list(dict.fromkeys(sentences))
    everything = dict.fromkeys(originals)
    reports = []
    for method in _methods(settings, seed):
        started = time.perf_counter()
        with (reporter or SilentReporter()).step(method.name.replace("_", "-"), len(originals)) as advance:
            variants, reused = cached_variants(method, originals, cache, advance)
        reports.append(_gather(method, originals, variants, everything, reused, started))
    report = AugmentationReport(len(originals), len(everything), tuple(reports))
    return Augmented(list(everything), report)


def _methods(settings: AugmentationSettings, seed: int) -> list[Method]:
    methods: list[Method] = []
    if settings.wordnet:
        methods.append(
            SynonymSubstitution(
                read_wordnet(Path(settings.wordnet)),
                share=settings.substituted_share,
                variants=settings.variants,
                seed=seed,
            )
        )
    if settings.there:
        from edgeembed.augmentation.back_translation import BackTranslation

        methods.append(BackTranslation(settings.there, settings.back))
    return methods


def _gather(
    method: Method,
    originals: Sequence[str],
    variants: Mapping[str, Sequence[Variant]],
    everything: dict[str, None],
    reused: int,
    started: float,
) -> MethodReport:
    """Put a method's new sentences among everything there is, and count."""
    made: list[tuple[str, Variant]] = []
    unchanged = duplicates = 0
    for original in originals:
        for variant in variants[original]:
            if variant.text in {"", original}:
                unchanged += 1
            elif variant.text in everything:
                duplicates += 1
            else:
                everything[variant.text] = None
                made.append((original, variant))
    counts = [variant.substituted for _, variant in made if variant.substituted is not None]
    return MethodReport(
        method=method.name,
        made=len(made),
        unchanged=unchanged,
        duplicates=duplicates,
        reused_sentences=reused,
        substituted_words=round(fmean(counts), 3) if counts else None,
        samples=tuple(Sample(original, variant.text) for original, variant in made[:: -(-len(made) // _SAMPLES) or 1]),
        seconds=round(time.perf_counter() - started, 3),
    )
