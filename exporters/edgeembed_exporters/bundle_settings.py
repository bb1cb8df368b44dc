"""The settings of a bundle: each option of an export that needs no file is declared here, once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from edgeembed_runtime.errors import InputError
from pydantic import Field, field_validator, model_validator

from edgeembed_exporters.precision import PRECISIONS, precision_names
from edgeembed_exporters.settings import Only, Settings, spelled

Role = Literal["semantic", "relevance", "both"]
Tracer = Literal["torch", "optimum"]
Backend = Literal["onnx", "numpy"]

AUTO = "auto"
"""In place of a precision: the most precise one that keeps the limits."""

OMIT = Only("encoder", "omit it")
_LABELS = Only("encoder", "use {min_label_agreement} and {max_probability_difference}")
BEFORE_FINETUNING = Only(
    "encoder",
    "trim or reduce the encoder before `edgeembed finetune`: `edgeembed export --torch-weights` with the same option",
)
_EMBEDDINGS = Only("classifier", "use {min_cosine}")


class BundleSettings(Settings):
    """The settings of a bundle. Wrong settings raise InputError.

    `BundleKeywords` repeats names and types for type checkers; a test compares both.
    """

    precision: str = Field(default="fp32", description="Precision of the weights.")
    role: Annotated[Role, OMIT] = Field(
        default="both",
        description="Use of the encoder: semantic reads 128 tokens, with the model's prompt for documents before all "
        "texts; relevance and both read as many tokens as the model, with its prompts for queries and documents.",
    )
    max_seq_length: int | None = Field(
        default=None, description="Maximum number of tokens to read, special tokens included, instead of the role's."
    )
    prompts: Annotated[Mapping[str, str], OMIT] = Field(
        default_factory=dict,
        description="Text to put before queries, documents, or texts of any other prompt name, instead of the model's.",
        examples=[{"query": "query: "}],
    )
    min_cosine: Annotated[float | None, _LABELS] = Field(
        default=None,
        ge=-1,
        le=1,
        description="Minimum cosine of any sentence to the model after it was trimmed or reduced.",
        examples=[0.99],
    )
    min_rank: Annotated[float | None, _LABELS] = Field(
        default=None,
        ge=-1,
        le=1,
        description="Minimum rank correlation (Spearman) between the cosines of all pairs of sentences by the model, "
        "after it was trimmed or reduced, and by the bundle; it needs twelve sentences.",
        examples=[0.95],
    )
    min_overlap: Annotated[float | None, _LABELS] = Field(
        default=None,
        ge=0,
        le=1,
        description="Minimum share of a sentence's ten nearest sentences that the bundle keeps, on average; it needs "
        "twelve sentences.",
        examples=[0.95],
    )
    min_original_cosine: Annotated[float | None, OMIT] = Field(
        default=None,
        ge=-1,
        le=1,
        description="Minimum cosine of any sentence to the model before it was trimmed. Not with `dim`: embeddings of "
        "different dimensions have no cosine.",
        examples=[0.99],
    )
    min_original_rank: Annotated[float | None, OMIT] = Field(
        default=None,
        ge=-1,
        le=1,
        description="Minimum rank correlation (Spearman) between the cosines of all pairs of sentences by the model, "
        "before it was trimmed or reduced, and by the bundle.",
        examples=[0.95],
    )
    min_label_agreement: Annotated[float | None, _EMBEDDINGS] = Field(
        default=None,
        ge=0,
        le=1,
        description="For a classifier: minimum share of texts with the same label.",
        examples=[0.95],
    )
    max_probability_difference: Annotated[float | None, _EMBEDDINGS] = Field(
        default=None,
        ge=0,
        le=1,
        description="For a classifier: maximum difference of a probability.",
        examples=[0.05],
    )
    max_size_mb: float | None = Field(
        default=None,
        gt=0,
        description="Maximum size of the bundle in megabytes of a million bytes, with everything in it.",
        examples=[8],
    )
    max_latency_ms: float | None = Field(
        default=None,
        gt=0,
        description="Maximum milliseconds per text on this machine, tokenization included: the median on one thread.",
        examples=[1],
    )
    trim_size: Annotated[int | None, BEFORE_FINETUNING] = Field(
        default=None,
        description="Keep at most this many tokens of the vocabulary, the most frequent ones in `trim_to`.",
    )
    dim: Annotated[int | None, BEFORE_FINETUNING] = Field(
        default=None, description="Reduce embeddings to this many dimensions by a PCA of the text in `fit`."
    )
    whiten: Annotated[bool, BEFORE_FINETUNING] = Field(
        default=False, description="Scale all dimensions of the PCA to the same variance."
    )
    tracer: Annotated[Tracer, OMIT] = Field(
        default="torch", description="Library that traces the encoder; optimum needs edgeembed[optimum]."
    )
    backend: Annotated[Backend, OMIT] = Field(
        default="onnx",
        description="Engine of the bundle; numpy is for students without attention and static embeddings, each with at "
        "most one linear Dense layer.",
    )
    ort: bool = Field(default=False, description="Also write the model in ONNX Runtime's format for phones.")
    torch_weights: Annotated[bool, OMIT] = Field(
        default=False,
        description="Also write the encoder's torch weights, so that sentence-transformers loads the bundle without "
        "its ONNX backend.",
    )
    name: str | None = Field(default=None, description="Name of the encoder or classifier.")
    near_cosine: Annotated[float | None, OMIT] = Field(
        default=None,
        gt=0,
        le=1,
        description="Minimum cosine at which the runtime's interests take two texts for one topic.",
        examples=[0.4],
    )

    def limit(self, name: str, precision: str) -> float:
        """Return a limit on what a precision may cost: the setting of this name, or else the precision's default."""
        given: float | None = getattr(self, name)
        default: float = getattr(PRECISIONS[precision], name)
        return default if given is None else given

    @property
    def calibrates(self) -> bool:
        """Whether some of the sentences are for calibration."""
        return self.precision == AUTO or PRECISIONS[self.precision].calibrates

    @classmethod
    def choices(cls, name: str) -> tuple[str, ...]:
        """Return the values that a setting may have; none if they cannot be listed."""
        return (*precision_names(), AUTO) if name == "precision" else super().choices(name)

    @classmethod
    def help(cls, name: str) -> str:
        """Return what a setting does. Other settings are in backticks."""
        if name != "precision":
            return super().help(name)
        precisions = ", ".join(f"{each} {PRECISIONS[each].help}" for each in precision_names())
        return (
            f"{super().help(name)} {precisions}; {AUTO} is the most precise one that keeps `max_size_mb` and "
            "`max_latency_ms`."
        )

    @classmethod
    def default_text(cls, name: str) -> str | None:
        """Return a setting's default, for help and reference; None if there is none to be shown."""
        limits = {each: getattr(PRECISIONS[each], name, None) for each in precision_names()}
        if all(isinstance(limit, float) for limit in limits.values()):
            return ", ".join(f"{limit:g} for {each}" for each, limit in limits.items())
        return {
            "name": "the folder's name",
            "near_cosine": "what 2 % of the pairs of sentences reach, or 0.4 if there are fewer than 100",
        }.get(name) or super().default_text(name)

    def check_reduction(self, *, vocabulary: object, trim_to: object, fit: object) -> None:
        """Check the settings of a reduction and the text for them, which need or exclude each other.

        Args:
            vocabulary: A trimmed tokenizer; None if there is none.
            trim_to: The text that the vocabulary is trimmed to; None if there is none.
            fit: The text that the PCA is fitted on; None if there is none.

        Raises:
            InputError: If two contradict each other, or one lacks another.
        """
        if vocabulary is not None and trim_to is not None:
            raise InputError(
                f"{spelled('vocabulary')} and {spelled('trim_to')} both choose the tokens to keep; expected one of them"
            )
        if self.trim_size is not None and trim_to is None:
            raise InputError(
                f"{spelled('trim_size')} is {self.trim_size} without text; expected {spelled('trim_to')} with the text "
                "to choose tokens by"
            )
        if self.dim is not None and fit is None:
            raise InputError(
                f"{spelled('dim')} is {self.dim} without text; expected {spelled('fit')} with the text to fit the "
                "PCA on"
            )
        if self.dim is None and fit is not None:
            raise InputError(
                f"{spelled('fit')} is given without {spelled('dim')}; expected {spelled('dim')} with the number of "
                "dimensions"
            )

    @field_validator("precision", mode="before")
    @classmethod
    def _check_precision(cls, value: Any) -> str:
        if not isinstance(value, str) or value not in cls.choices("precision"):
            raise InputError(f"{spelled('precision')} is {value!r}; expected {cls.expected('precision')}")
        return value

    @model_validator(mode="after")
    def _check_combinations(self) -> BundleSettings:
        if self.precision == AUTO and self.max_size_mb is None and self.max_latency_ms is None:
            limits = f"{spelled('max_size_mb')}, {spelled('max_latency_ms')} or both"
            raise InputError(f"{spelled('precision')} is 'auto' without a limit; expected {limits}")
        if self.name is not None and not self.name.strip():
            raise InputError(f"{spelled('name')} is empty; expected a name, or none for the name of the folder")
        if self.whiten and self.dim is None:
            dim = spelled("dim")
            raise InputError(f"{spelled('whiten')} is set without {dim}; expected {dim} with the number of dimensions")
        if self.backend == "numpy":
            self._check_numpy()
        return self

    def _check_numpy(self) -> None:
        suited = (*precision_names("numpy"), AUTO)
        if self.precision not in suited:
            raise InputError(
                f"{spelled('precision')} is {self.precision!r}, which the numpy backend does not run; expected one of: "
                f"{', '.join(suited)}"
            )
        if self.tracer != "torch":
            raise InputError(f"{spelled('tracer')} is {self.tracer!r}, but the numpy backend needs no tracing; omit it")
        for name, why in {"torch_weights": "it has none", "ort": "the ORT format is made from ONNX"}.items():
            if getattr(self, name):
                raise InputError(
                    f"{spelled(name)} is set for the numpy backend, but {why}; expected {spelled('backend')} 'onnx'"
                )


class BundleKeywords(TypedDict, total=False):
    """The fields of `BundleSettings` as keywords."""

    precision: str
    role: Role
    max_seq_length: int | None
    prompts: Mapping[str, str]
    min_cosine: float | None
    min_rank: float | None
    min_overlap: float | None
    min_original_cosine: float | None
    min_original_rank: float | None
    min_label_agreement: float | None
    max_probability_difference: float | None
    max_size_mb: float | None
    max_latency_ms: float | None
    trim_size: int | None
    dim: int | None
    whiten: bool
    tracer: Tracer
    backend: Backend
    ort: bool
    torch_weights: bool
    name: str | None
    near_cosine: float | None
