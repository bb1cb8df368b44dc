"""The gate of an export: a bundle that misses a limit on parity or size is not written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime import Bundle, Encoder
from edgeembed_runtime.errors import BundleError, CheckError, InputError
from edgeembed_runtime.parity import ClassifierParity, Parity, WorstSentence
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from edgeembed_exporters.held_out import EVERY, one_in_eight
from edgeembed_exporters.model_spec import ModelSpec
from edgeembed_exporters.precision import precision_names
from edgeembed_exporters.rank_agreement import MIN_TEXTS, Matrix, normalize_rows, rank_agreement
from edgeembed_exporters.settings import spelled
from edgeembed_exporters.truncation import without_truncation

MAX_COMPARED_TOKENS = 1024
"""The tokens of a text that are compared. Attention takes memory that grows with their square: gigabytes at 8,192."""

_WORST_SENTENCES = 10
_SHOWN_CHARACTERS = 80
_PARITY_TEXT = "parity_sentences.txt"
_MAX_CALIBRATION_SENTENCES = 64


class GateError(CheckError):
    """Raised when a bundle misses a limit; nothing was written.

    Args:
        message: What was measured and what the limit is, in one line.
        parity: What was measured.

    Attributes:
        parity: The agreement between bundle and model, with the worst sentences; None if the embeddings cannot be
            compared, or another limit was missed.
    """

    def __init__(self, message: str, parity: "Parity | OriginalParity | ClassifierParity | None" = None) -> None:
        super().__init__(message)
        self.parity = parity


@dataclass(frozen=True)
class OriginalParity:
    """The agreement between a bundle and the model before it was reduced.

    Attributes:
        sentences: Number of sentences compared.
        min_cosine: The lowest cosine of a sentence's two embeddings; this and the next three are None or empty if the
            dimension was reduced, because embeddings of different dimensions have no cosine.
        mean_cosine: The mean cosine.
        p01_cosine: The first percentile of the cosines.
        worst_sentences: The sentences with the lowest cosines, in ascending order.
        spearman: Spearman's correlation between the two models' cosines of all pairs of sentences; None if there were
            too few.
        top_10_overlap: The mean share of a sentence's ten nearest neighbors that both agree on; None if there were
            too few sentences.
    """

    sentences: int
    min_cosine: float | None
    mean_cosine: float | None
    p01_cosine: float | None
    worst_sentences: tuple[WorstSentence, ...]
    spearman: float | None
    top_10_overlap: float | None

    def __str__(self) -> str:
        """Return what was measured in one line."""
        figures = rank_figures(self)
        if self.min_cosine is not None:
            figures.insert(0, f"cosine worst {self.min_cosine:.5f}, mean {self.mean_cosine:.5f}")
        return ", ".join(figures) or "too few sentences to compare"


def rank_figures(parity: Parity | OriginalParity) -> list[str]:
    """Return what is known of the rank agreement, as a report states it."""
    figures = []
    if parity.spearman is not None:
        figures.append(f"rank correlation of all pairs {parity.spearman:.5f}")
    if parity.top_10_overlap is not None:
        figures.append(f"{parity.top_10_overlap:.1%} of the ten nearest stay")
    return figures


def default_sentences() -> list[str]:
    """Return the text in this package: 280 sentences and texts of many kinds, most in English."""
    text = (resources.files("edgeembed_exporters") / _PARITY_TEXT).read_text(encoding="utf-8")
    return text.splitlines()


def split_sentences(
    sentences: Iterable[str], tokenizer: Tokenizer | None = None, *, calibrates: bool
) -> tuple[list[str], list[str]]:
    """Return the sentences to calibrate on and the distinct sentences to compare on.

    Args:
        sentences: The text.
        tokenizer: Cuts each text after 1,024 tokens; None keeps texts as they are.
        calibrates: Whether one sentence in eight (at most 64) is for calibration; of fewer than eight, all are.

    Raises:
        InputError: If there are no sentences.
    """
    texts = [] if isinstance(sentences, str) else list(dict.fromkeys(sentences))
    held_out = texts if tokenizer is None else list(dict.fromkeys(_beginning(text, tokenizer) for text in texts))
    if not held_out:
        raise InputError(
            "there are no sentences to compare the bundle with the model on; expected a list of a few hundred"
        )
    if not calibrates:
        return [], held_out
    return (held_out, held_out) if len(held_out) < EVERY else one_in_eight(held_out, _MAX_CALIBRATION_SENTENCES)


def cutting_tokenizer(spec: ModelSpec) -> Tokenizer | None:
    """Return a tokenizer by which the texts of a comparison are cut; None for a model that reads no very long ones."""
    is_long = spec.max_seq_length > MAX_COMPARED_TOKENS
    return without_truncation(spec.tokenizer.backend_tokenizer) if is_long else None


def _beginning(text: str, tokenizer: Tokenizer) -> str:
    """Return what a text's first tokens were made of."""
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    return text[: offsets[MAX_COMPARED_TOKENS][0]] if len(offsets) > MAX_COMPARED_TOKENS else text


def compare(model: SentenceTransformer, bundle: Bundle | Path, sentences: Sequence[str]) -> Parity:
    """Encode sentences with a model and with its bundle, and compare the embeddings.

    Args:
        model: The model that the bundle was made from.
        bundle: The bundle.
        sentences: Sentences that the bundle was not calibrated on; repeated ones count once.

    Raises:
        GateError: If the bundle cannot encode, or its embeddings have another dimension than the model's.
    """
    texts = list(dict.fromkeys(sentences))
    expected = encode_each(model, texts)
    try:
        given = _encode(bundle, texts)
    except BundleError as error:
        raise GateError(f"the bundle cannot encode; nothing was written: choose another precision ({error})") from error
    if given.shape != expected.shape:
        raise GateError(
            f"the bundle's embeddings have {given.shape[1]} dimensions, expected {expected.shape[1]} like the model's; "
            "nothing was written: choose another precision"
        )
    return measure_parity(texts, expected, given)


def compare_with_original(
    original: SentenceTransformer, bundle: Bundle | Path, sentences: Sequence[str]
) -> OriginalParity:
    """Compare a bundle with the model before it was reduced.

    Args:
        original: The model before trimming and dimension reduction.
        bundle: The bundle.
        sentences: Sentences to encode; repeated ones count once.

    Returns:
        The rank agreement and, if both have the same dimension, the cosines.
    """
    texts = list(dict.fromkeys(sentences))
    expected, given = encode_each(original, texts), _encode(bundle, texts)
    if given.shape == expected.shape:
        return OriginalParity(**vars(measure_parity(texts, expected, given)))
    return OriginalParity(len(texts), None, None, None, (), *rank_agreement(expected, given))


def encode_each(model: SentenceTransformer, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return a model's embeddings of texts that it reads one at a time, as a bundle does, float32 (texts, dimension).

    In a padded batch some encoders return other embeddings, because their convolutions read the padding; and a batch of
    long texts takes many times the memory.
    """
    embeddings: npt.NDArray[np.float32] = model.encode(
        list(texts), batch_size=1, convert_to_numpy=True, show_progress_bar=False
    )
    return embeddings


def measure_parity(
    sentences: Sequence[str], expected: npt.NDArray[np.float32], given: npt.NDArray[np.float32]
) -> Parity:
    """Return the agreement between the embeddings of two models.

    Args:
        sentences: The sentences.
        expected: Their embeddings by the model, (sentences, dimension).
        given: Their embeddings by the bundle, (sentences, dimension).
    """
    cosines = _cosines(normalize_rows(expected), normalize_rows(given))
    ascending = np.argsort(np.nan_to_num(cosines, nan=-np.inf), kind="stable")
    spearman, overlap = rank_agreement(expected, given)
    return Parity(
        sentences=len(sentences),
        min_cosine=float(cosines.min()),
        mean_cosine=float(cosines.mean()),
        worst_sentences=tuple(WorstSentence(sentences[i], float(cosines[i])) for i in ascending[:_WORST_SENTENCES]),
        p01_cosine=float(np.quantile(cosines, 0.01)),
        spearman=spearman,
        top_10_overlap=overlap,
    )


def check_parity(parity: Parity, min_cosine: float, precision: str | None = None) -> None:
    """Raise GateError if the worst sentence's cosine is below a minimum, or NaN.

    Args:
        parity: What was measured.
        min_cosine: The minimum cosine of any sentence.
        precision: The bundle's precision, for the advice.
    """
    if parity.min_cosine >= min_cosine:  # false for NaN
        return
    worst = parity.worst_sentences[0].text[:_SHOWN_CHARACTERS]
    raise GateError(
        f"the worst cosine to the model over {parity.sentences} sentences is {parity.min_cosine:.5f}, "
        f"required is {min_cosine:g}; nothing was written: {higher_precision_or(precision)}lower "
        f"{spelled('min_cosine')} "
        f"({worst!r})",
        parity,
    )


def check_ranking(parity: Parity, min_rank: float, min_overlap: float, precision: str | None = None) -> None:
    """Raise GateError if a bundle ranks texts differently than its model, however high their cosines are.

    If all texts of a model are alike, high cosines do not show whether their order survived. Fewer than twelve
    sentences are not ranked, and a model for which all are equal has no order to lose.

    Args:
        parity: What was measured.
        min_rank: The minimum rank correlation of the cosines of all pairs of sentences.
        min_overlap: The minimum mean share of a sentence's ten nearest neighbors that stay.
        precision: The bundle's precision, for the advice.
    """
    if parity.sentences < MIN_TEXTS or parity.spearman is None or parity.top_10_overlap is None:
        return
    limits = {
        "min_rank": ("rank correlation with the model", parity.spearman, min_rank),
        "min_overlap": ("overlap of the ten nearest with the model's", parity.top_10_overlap, min_overlap),
    }
    for option, (measure, found, limit) in limits.items():
        if found < limit:
            raise GateError(
                f"the {measure} over {parity.sentences} sentences is {found:.5f}, required is {limit:g}; nothing was "
                f"written: {higher_precision_or(precision)}lower {spelled(option)}",
                parity,
            )


def higher_precision_or(precision: str | None) -> str:
    """Return the first advice of a message about a limit that a bundle misses: none at fp32, the highest precision."""
    return "" if precision == precision_names()[0] else "choose a higher precision or "


def check_original_parity(parity: OriginalParity, min_cosine: float | None, min_rank: float | None) -> None:
    """Raise GateError if a bundle differs too much from the model before it was reduced.

    Args:
        parity: What was measured.
        min_cosine: The minimum cosine of any sentence; None sets no limit.
        min_rank: The minimum rank correlation of all pairwise cosines; None sets no limit.
    """
    if min_cosine is not None and not (parity.min_cosine is not None and parity.min_cosine >= min_cosine):
        worst = parity.worst_sentences[0].text[:_SHOWN_CHARACTERS]
        raise GateError(
            f"the worst cosine to the original model over {parity.sentences} sentences is {parity.min_cosine:.5f}, "
            f"required is {min_cosine:g}; nothing was written: keep more tokens or lower "
            f"{spelled('min_original_cosine')} ({worst!r})",
            parity,
        )
    if min_rank is not None and not (parity.spearman is not None and parity.spearman >= min_rank):
        found = "unknown" if parity.spearman is None else f"{parity.spearman:.5f}"
        raise GateError(
            f"the rank correlation with the original model over {parity.sentences} sentences is {found}, required is "
            f"{min_rank:g}; nothing was written: keep more tokens or dimensions, or lower "
            f"{spelled('min_original_rank')}",
            parity,
        )


def check_size(size_bytes: int, max_size_mb: float | None, *, is_estimate: bool = False) -> None:
    """Raise GateError if a bundle is too large.

    Args:
        size_bytes: The size of the bundle.
        max_size_mb: The maximum in megabytes of a million bytes; None sets no limit.
        is_estimate: Whether the size is a lower bound, known before the bundle is written.
    """
    if max_size_mb is not None and size_bytes > max_size_mb * 1e6:
        found = f"{'at least ' if is_estimate else ''}{size_bytes / 1e6:.2f} MB"
        raise GateError(
            f"the bundle has {found}, allowed are {max_size_mb:g}; nothing was written: raise "
            f"{spelled('max_size_mb')}, choose a lower precision, or export a smaller model or vocabulary"
        )


def worst_lines(parity: Parity | OriginalParity | ClassifierParity) -> list[str]:
    """Return a line for each of the worst sentences: its figure and its beginning, escaped for a terminal.

    The figure is the cosine, or for a classifier the difference of probabilities.
    """
    if isinstance(parity, ClassifierParity):
        rows = parity.worst_sentences
        return [f"{each.probability_difference:.4f}  {each.text[:_SHOWN_CHARACTERS]!r}" for each in rows]
    return [f"{each.cosine:.5f}  {each.text[:_SHOWN_CHARACTERS]!r}" for each in parity.worst_sentences]


def _encode(bundle: Bundle | Path, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    embeddings: npt.NDArray[np.float32] = Encoder(bundle, threads=None).encode(
        texts, on_truncate="ignore", on_unknown="ignore", show_progress_bar=False
    )
    return embeddings


def _cosines(model: Matrix, bundle: Matrix) -> Matrix:
    """Return the cosine of each pair of rows: 1 if both are zero, NaN if one is not finite."""
    both_zero = ~model.any(axis=1) & ~bundle.any(axis=1)
    cosines: Matrix = np.where(both_zero, 1.0, (model * bundle).sum(axis=1))
    return cosines
