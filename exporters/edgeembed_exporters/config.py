"""The settings of an export: one schema, validated before any work starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from edgeembed_runtime.errors import InputError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Precision = Literal["fp32", "fp16", "int8", "int4"]
PrecisionChoice = Literal["fp32", "fp16", "int8", "int4", "auto"]
Role = Literal["semantic", "relevance", "both"]
Tracer = Literal["torch", "optimum"]
Backend = Literal["onnx", "numpy"]

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
"""All precisions, the most precise first."""

MIN_COSINE: dict[Precision, float] = {"fp32": 0.9999, "fp16": 0.999, "int8": 0.99, "int4": 0.85}
"""The default minimum cosine of any sentence to the model.

fp32 differs from torch only by rounding (measured: 1 - 1e-12), fp16 by little more. At int8 the worst of 2,910
sentences of a six-layer teacher measured 0.994; a faulty quantization falls far below 0.99. At int4 it measured 0.91,
and the rank correlation on the STS-B dev set fell by 0.3 points (docs/results/export.md).
"""

MIN_RANK: dict[Precision, float] = {"fp32": 0.99, "fp16": 0.99, "int8": 0.95, "int4": 0.85}
"""The default minimum rank correlation between the model's and the bundle's cosines of all pairs of sentences.

all-MiniLM-L6-v2 measured 1.0 at fp32 and fp16, 0.997 at int8 and 0.945 at int4 on the text in this package. A bundle
that lost the order of a model whose embeddings are all alike measured 0.5, with all cosines above 0.999.
"""

MIN_OVERLAP: dict[Precision, float] = {"fp32": 0.95, "fp16": 0.95, "int8": 0.8, "int4": 0.6}
"""The default minimum share of a sentence's ten nearest neighbors that stay, on average.

all-MiniLM-L6-v2 measured 1.0 at fp32 and fp16, 0.95 at int8 and 0.8 at int4, and the bundle without the order 0.3.
"""

MIN_LABEL_AGREEMENT: dict[Precision, float] = {"fp32": 0.99, "fp16": 0.98, "int8": 0.9, "int4": 0.75}
"""The default minimum share of texts for which a classifier and its bundle predict the same label.

A six-layer classifier of TREC's questions measured 1.0 at fp32 and fp16, 0.967 at int8 and 0.865 at int4 on the text in
this package, most of which resembles no question; on TREC's test questions 0.998 at int8 and 0.976 at int4.
"""

MAX_PROBABILITY_DIFFERENCE: dict[Precision, float] = {"fp32": 0.01, "fp16": 0.05, "int8": 0.5, "int4": 1.0}
"""The default maximum difference of a probability between a classifier and its bundle.

The same classifier measured 1e-6 at fp32, 0.0017 at fp16, 0.23 at int8 and 0.96 at int4, where only the agreement of
the labels is limited by default.
"""

BYTES_PER_WEIGHT: dict[Precision, float] = {"fp32": 4, "fp16": 2, "int8": 1, "int4": 0.5}
"""The minimum bytes per weight at each precision; scales, and weights that are not quantized, come on top."""

_Cosine = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False, description="a number from -1 to 1, such as 0.99")]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, description="a number from 0 to 1, such as 0.95")]
_Megabytes = Annotated[float, Field(gt=0, allow_inf_nan=False, description="a positive number of megabytes, such as 8")]
_Milliseconds = Annotated[
    float, Field(gt=0, allow_inf_nan=False, description="a positive number of milliseconds, such as 1")
]
_NearCosine = Annotated[
    float, Field(gt=0, le=1, allow_inf_nan=False, description="a cosine above 0 and at most 1, such as 0.4")
]


@dataclass(frozen=True)
class Provenance:
    """The origin of a model, for the manifest and the model card.

    Attributes:
        teacher: The model that it was distilled from; None if it is not a student.
        space: The embedding space that it shares with its teacher, or that its bundle states; None for its own.
        recipe: The resolved values of the distillation recipe.
        licenses: Licenses of the training text.
        command: The command that made the bundle.
        license: License of the weights as the Hugging Face Hub spells it, such as "apache-2.0".
        base_model: The model that was exported; for a student, its teacher.
        languages: Language codes, such as "en".
    """

    teacher: str | None = None
    space: str | None = None
    recipe: dict[str, Any] | None = None
    licenses: tuple[str, ...] = ()
    command: str | None = None
    license: str | None = None
    base_model: str | None = None
    languages: tuple[str, ...] = ()


class ExportConfig(BaseModel):
    """The settings of an export. Wrong settings raise InputError.

    Attributes:
        precision: "fp32"; "fp16" for half the size; "int8" for a quarter of the size and half the latency; "int4" for
            an eighth of the size; or "auto" for the most precise of them that keeps `max_size_mb` and `max_latency_ms`.
        role: The use of the bundle: "semantic" ranks by similarity, "relevance" by a query, "both" is for either. It
            decides how many tokens are read and which prompts are used; see `roles.in_role`.
        max_seq_length: Maximum number of tokens to read, instead of the role's.
        prompts: Prompts by name ("query", "document" or any other); they replace the model's.
        min_cosine: Minimum cosine of any sentence to the model; None is the precision's default, `MIN_COSINE`.
        min_rank: Minimum Spearman correlation between the cosines of all pairs of sentences by the model and by the
            bundle; None is the precision's default, `MIN_RANK`. It needs twelve sentences.
        min_overlap: Minimum mean share of a sentence's ten nearest neighbors that the bundle keeps; None is the
            precision's default, `MIN_OVERLAP`. It needs twelve sentences.
        min_original_cosine: Minimum cosine of any sentence to the model before it was reduced; None sets no limit. It
            needs embeddings of the same dimension.
        min_original_rank: Minimum Spearman correlation between the cosines of all pairs of sentences by the model
            before it was reduced and by the bundle; None sets no limit.
        min_label_agreement: For a classifier, the minimum share of texts with the same label; None is the precision's
            default (`MIN_LABEL_AGREEMENT`).
        max_probability_difference: For a classifier, the maximum difference of a probability; None is the precision's
            default (`MAX_PROBABILITY_DIFFERENCE`).
        max_size_mb: Maximum size of the bundle in megabytes of a million bytes, with everything in it; None sets no
            limit.
        max_latency_ms: Maximum milliseconds per text on this machine, tokenization included: the median on one thread;
            None sets no limit.
        trim_size: Maximum vocabulary size after trimming; None keeps all tokens that the trim texts use.
        dim: Dimension of a PCA head; None keeps the model's dimension.
        whiten: Whether the PCA head gives all dimensions the same variance.
        tracer: The library that traces the encoder: "torch", or "optimum" with its export configurations
            (`edgeembed[optimum]`). Both produce equivalent graphs.
        backend: The engine of the bundle: "onnx"; or "numpy" for matrix students and static embeddings, each with at
            most one linear Dense layer.
        ort: Whether to write the model in the ORT format as well.
        torch_weights: Whether to write the encoder's torch weights as well, so that sentence-transformers can load the
            bundle without its ONNX backend.
        name: The encoder's name; None is the name of the folder.
        provenance: The model's origin.
        quality: Scores for the manifest and the model card.
        latency: Times per text, and the machine they were measured on, for the manifest and the model card.
        near_cosine: The minimum cosine at which a text joins a center of interest in the runtime, for the manifest.
            None measures it on the sentences, see `near_cosine.measure_near_cosine`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    precision: PrecisionChoice = "fp32"
    role: Role = "both"
    max_seq_length: int | None = None
    prompts: dict[str, str] = Field(default={}, description="a text by prompt name, such as {'query': 'query: '}")
    min_cosine: _Cosine | None = None
    min_rank: _Cosine | None = None
    min_overlap: _Share | None = None
    min_original_cosine: _Cosine | None = None
    min_original_rank: _Cosine | None = None
    min_label_agreement: _Share | None = None
    max_probability_difference: _Share | None = None
    max_size_mb: _Megabytes | None = None
    max_latency_ms: _Milliseconds | None = None
    trim_size: int | None = None
    dim: int | None = None
    whiten: bool = False
    tracer: Tracer = "torch"
    backend: Backend = "onnx"
    ort: bool = False
    torch_weights: bool = False
    name: str | None = None
    provenance: Provenance = Provenance()
    quality: dict[str, Any] | None = None
    latency: dict[str, Any] | None = None
    near_cosine: _NearCosine | None = None

    if not TYPE_CHECKING:  # so that type checkers see the fields as arguments

        def __init__(self, **settings: Any) -> None:
            try:
                super().__init__(**settings)
            except ValidationError as error:
                raise InputError(self._describe(error)) from None

    def min_cosine_at(self, precision: Precision) -> float:
        """Return the minimum cosine of any sentence to the model at a precision."""
        return MIN_COSINE[precision] if self.min_cosine is None else self.min_cosine

    def min_rank_at(self, precision: Precision) -> float:
        """Return the minimum rank correlation with the model at a precision."""
        return MIN_RANK[precision] if self.min_rank is None else self.min_rank

    def min_overlap_at(self, precision: Precision) -> float:
        """Return the minimum share of the ten nearest neighbors that stay at a precision."""
        return MIN_OVERLAP[precision] if self.min_overlap is None else self.min_overlap

    def min_label_agreement_at(self, precision: Precision) -> float:
        """Return the minimum share of texts with the same label as the classifier's at a precision."""
        return MIN_LABEL_AGREEMENT[precision] if self.min_label_agreement is None else self.min_label_agreement

    def max_probability_difference_at(self, precision: Precision) -> float:
        """Return the maximum difference of a probability to the classifier's at a precision."""
        limit = self.max_probability_difference
        return MAX_PROBABILITY_DIFFERENCE[precision] if limit is None else limit

    @model_validator(mode="after")
    def _check_combinations(self) -> ExportConfig:
        if self.precision == "auto" and self.max_size_mb is None and self.max_latency_ms is None:
            raise InputError("precision is 'auto' without a limit; expected max_size_mb, max_latency_ms or both")
        if self.name is not None and not self.name.strip():
            raise InputError("name is empty; expected the encoder's name, or None for the name of the folder")
        if self.whiten and self.dim is None:
            raise InputError("whiten is set without dim; expected dim with the number of dimensions")
        if self.backend == "numpy":
            self._check_numpy()
        return self

    def _check_numpy(self) -> None:
        if self.precision == "int4":
            raise InputError("precision is 'int4', which NumPy has no type for; expected fp32, fp16, int8 or auto")
        if self.tracer != "torch":
            raise InputError(f"tracer is {self.tracer!r}, but the numpy backend needs no tracing; leave it out")
        if self.torch_weights:
            raise InputError("torch_weights is set, but the numpy backend has none; expected backend 'onnx'")
        if self.ort:
            raise InputError("ort is set, but the ORT format is made from ONNX; expected backend 'onnx'")

    @classmethod
    def _describe(cls, error: ValidationError) -> str:
        """Return the first error in one line: what was given, and what is expected."""
        first = error.errors()[0]
        if first["type"] == "value_error":
            return str(first["ctx"]["error"])
        name, given = str(first["loc"][0]), first["input"]
        if first["type"] == "extra_forbidden":
            return f"{name} is not a setting of an export; expected one of: {', '.join(cls.model_fields)}"
        if first["type"] == "literal_error":
            expected = f"one of: {first['ctx']['expected'].replace(' or ', ', ').replace(chr(39), '')}"
        else:
            expected = _description(cls.model_fields[name]) or first["msg"].removeprefix("Input should be ")
        return f"{name} is {given!r}; expected {expected}"


def _description(field: Any) -> str | None:
    """Return a field's description, also that of an optional annotated type."""
    options = [item for choice in get_args(field.annotation) for item in getattr(choice, "__metadata__", ())]
    described: list[str | None] = [field.description, *(getattr(item, "description", None) for item in options)]
    return next((text for text in described if text), None)
