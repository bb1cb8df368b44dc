"""A model cut to what its users need before it is exported: fewer tokens, fewer dimensions."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edgeembed_exporters import add_head, trim_to, with_vocabulary
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from edgeembed.corpus import read_corpus
from edgeembed.corpus.sources import find_sources

# A head is fitted on 5,000 sentences and told on 1,000; more would only be read.
_MOST_READ = 6_000


@dataclass(frozen=True)
class Tailoring:
    """What is cut from a model.

    Attributes:
        vocabulary: A tokenizer.json whose tokens are kept.
        trim_to: Or a corpus: what its text needs is kept.
        trim_size: The most tokens kept then; None keeps all that the corpus uses.
        dim: The length of the new vectors; None keeps the model's.
        fit: The corpus that the head is fitted on.
        whiten: Whether all of the new dimensions get the same variance.
    """

    vocabulary: Path | None = None
    trim_to: tuple[str, ...] = ()
    trim_size: int | None = None
    dim: int | None = None
    fit: tuple[str, ...] = ()
    whiten: bool = False

    def check(self) -> None:
        """Refuse what does not go together.

        Raises:
            InputError: If an option misses another, or excludes it.
        """
        if self.vocabulary is not None and self.trim_to:
            raise InputError("--vocabulary and --trim-to both say which tokens are kept; give one of them")
        if self.trim_size is not None and not self.trim_to:
            raise InputError("--trim-size is given without text; expected --trim-to with the text to choose tokens by")
        if self.dim is not None and not self.fit:
            raise InputError(f"--dim {self.dim} is given without text; expected --fit with the text to fit the head on")
        if self.dim is None and (self.fit or self.whiten):
            raise InputError("--fit and --whiten make a head of fewer dimensions; expected --dim with their number")


def tailor(model: SentenceTransformer, tailoring: Tailoring) -> tuple[SentenceTransformer, dict[str, Any]]:
    """Cut a model: first its vocabulary, then its dimensions.

    Args:
        model: A loaded model; it stays as it is.
        tailoring: What is cut.

    Returns:
        The model, and what each cut did, for the bundle's manifest: "vocabulary" and "head".

    Raises:
        InputError: If the model cannot be cut so, or a corpus cannot be read.
    """
    reports: dict[str, Any] = {}
    if tailoring.vocabulary is not None:
        model = with_vocabulary(model, _read_tokenizer(tailoring.vocabulary))
    if tailoring.trim_to:
        texts = (text for source in find_sources(tailoring.trim_to) for text in source.texts())
        model, trimmed = trim_to(model, texts, size=tailoring.trim_size)
        reports["vocabulary"] = asdict(trimmed)
    if tailoring.dim is not None:
        model, head = add_head(
            model, read_corpus(tailoring.fit, limit=_MOST_READ), dim=tailoring.dim, whiten=tailoring.whiten
        )
        reports["head"] = asdict(head)
    return model, reports


def summary(reports: dict[str, Any]) -> list[str]:
    """Say what `tailor` did, a line a cut.

    Args:
        reports: What `tailor` gave.
    """
    lines = []
    if "vocabulary" in reports:
        report = reports["vocabulary"]
        before, after, drift = report["before"], report["after"], report["drift"]
        lines.append(
            f"vocabulary: {after['size']:,} of {before['size']:,} tokens kept, {report['saved_bytes'] / 1e6:.2f} MB "
            f"of float32 saved; unknown {_share(before['unknown_rate'])} -> {_share(after['unknown_rate'])}, tokens a "
            f"word {before['tokens_per_word']:.3f} -> {after['tokens_per_word']:.3f}, cosine to the whole model worst "
            f"{drift['min_cosine']:.4f}, mean {drift['mean_cosine']:.4f}"
        )
    if "head" in reports:
        report = reports["head"]
        lines.append(
            f"head: {report['dim_after']} of {report['dim_before']} dimensions, {report['explained_variance']:.1%} of "
            f"the variance; cosines keep {report['spearman']:.1%} of their rank order, "
            f"{report['neighbours_kept']:.1%} of the ten nearest stay"
        )
    return lines


def _share(rate: float | None) -> str:
    return "none" if rate is None else f"{rate:.2%}"


def _read_tokenizer(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # tokenizers raises plain Exceptions
        raise InputError(
            f"{path} cannot be read as a tokenizer.json: {error}; make one with `edgeembed vocab`"
        ) from error
