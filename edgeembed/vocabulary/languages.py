"""What vocabularies cover of each language that a corpus has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgeembed_exporters.tailoring.coverage import Coverage, measure_coverage
from tokenizers import Tokenizer

from edgeembed.corpus.languages import LanguageSample
from edgeembed.vocabulary.words import whole_words


@dataclass(frozen=True)
class LanguageReport:
    """A language's part in a vocabulary, and what vocabularies cover of it.

    Attributes:
        sample: What was drawn of the language.
        coverage: How each tokenizer cuts the held-out text, by its name.
        whole_words: The share of the words that are one token of the first N, by the tokenizer's name and N.
    """

    sample: LanguageSample
    coverage: dict[str, Coverage]
    whole_words: dict[str, dict[int, float]]

    def to_dict(self) -> dict[str, Any]:
        """Give the figures by name, ready for JSON; sentences as their number."""
        return {
            "language": self.sample.language,
            "text_sentences": self.sample.text_sentences,
            "text_share": self.sample.text_share,
            "sample_share": self.sample.sample_share,
            "sample_sentences": self.sample.uses,
            "distinct_sentences": len(self.sample.sentences),
            "held_out_sentences": len(self.sample.held_out),
            "coverage": {name: row.to_dict() for name, row in self.coverage.items()},
            "whole_words": self.whole_words,
        }


def report_languages(
    samples: Sequence[LanguageSample], tokenizers: Mapping[str, Tokenizer]
) -> tuple[LanguageReport, ...]:
    """Measure tokenizers on each language's held-out text, or on all of it where it is too little to hold any out.

    Args:
        samples: What was drawn of each language.
        tokenizers: Tokenizers by name.
    """
    return tuple(
        LanguageReport(
            sample,
            {name: measure_coverage(each, sample.held_out or sample.sentences) for name, each in tokenizers.items()},
            {name: whole_words(each, sample.held_out or sample.sentences) for name, each in tokenizers.items()},
        )
        for sample in samples
    )
