"""What a caller may choose about a bundle, checked before any work."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from edgeembed_runtime.errors import InputError

Precision = Literal["fp32", "fp16", "int8", "int4"]
Role = Literal["semantic", "relevance", "both"]
Tracer = Literal["torch", "optimum"]
Backend = Literal["onnx", "numpy"]

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
"""All precisions, the most faithful first."""

MIN_COSINE: dict[str, float] = {"fp32": 0.9999, "fp16": 0.999, "int8": 0.99, "int4": 0.85}
"""The least cosine to the model that any sentence may have where a caller sets none.

fp32 differs from torch by rounding alone (measured: 1 - 1e-12), fp16 by little more. At int8 a six-layer teacher
measured 0.994 on its worst of 2,910 sentences; a quantization that goes wrong falls well below 0.99. At int4 it
measured 0.91, and its rank correlation on STS-B dev fell by 0.3 points (docs/results/export.md).
"""


LEAST_BYTES: dict[str, float] = {"fp32": 4, "fp16": 2, "int8": 1, "int4": 0.5}
"""The fewest bytes that a parameter takes at each precision; some parameters keep more, and scales come on top."""


@dataclass(frozen=True)
class Limits:
    """What a bundle must not exceed.

    Attributes:
        min_cosine: The least cosine to the model that any of the sentences may have; None is the precision's own
            (`MIN_COSINE`).
        max_size_mb: The most megabytes, of a million bytes, that the bundle may have; None sets no limit.
        max_latency_ms: The most milliseconds that one text may take on this machine, the median of the sentences
            on one thread, tokenizing included; None sets no limit.
        min_original_cosine: The least cosine to the original model that any of the sentences may have; None sets no
            limit. Only for bundles of the original's dimension.
        min_original_rank: The least rank correlation of all pairwise cosines to the original model's; None sets no
            limit.
    """

    min_cosine: float | None = None
    max_size_mb: float | None = None
    max_latency_ms: float | None = None
    min_original_cosine: float | None = None
    min_original_rank: float | None = None


@dataclass(frozen=True)
class Provenance:
    """Where a model comes from, as the manifest and the card state it.

    Attributes:
        teacher: The model that it was distilled from; None if it is not a student.
        recipe: How, as the recipe's resolved values.
        licenses: Licenses of the text that it was trained on.
        command: The command that made the bundle.
        license: License of the weights, as the hub spells it, such as "apache-2.0".
        base_model: The model that was exported; for a student, its teacher.
        languages: Codes of the languages that it is for, such as "en".
    """

    teacher: str | None = None
    recipe: dict[str, Any] | None = None
    licenses: tuple[str, ...] = field(default=())
    command: str | None = None
    license: str | None = None
    base_model: str | None = None
    languages: tuple[str, ...] = field(default=())


def check_options(
    *,
    precision: str,
    role: str,
    exporter: str,
    backend: str,
    torch_weights: bool,
    ort: bool,
    limits: Limits,
    name: str | None,
) -> None:
    """Refuse what cannot be asked for.

    Raises:
        InputError: If a choice is unknown or a limit cannot be a limit.
    """
    _check_choice("precision", precision, (*PRECISIONS, "auto"))
    if precision == "auto" and limits.max_size_mb is None and limits.max_latency_ms is None:
        raise InputError("precision is 'auto' without a limit; expected max_size_mb, max_latency_ms or both with it")
    _check_choice("role", role, get_args(Role))
    _check_choice("exporter", exporter, get_args(Tracer))
    _check_choice("backend", backend, get_args(Backend))
    if backend == "numpy":
        _check_numpy(precision, exporter, torch_weights=torch_weights, ort=ort)
    for option in ("min_cosine", "min_original_cosine", "min_original_rank"):
        given = getattr(limits, option)
        if given is not None and not -1 <= given <= 1:
            raise InputError(f"{option} is {given}; expected a number from -1 to 1, such as 0.99")
    _check_positive("max_size_mb", limits.max_size_mb, "megabytes, such as 8")
    _check_positive("max_latency_ms", limits.max_latency_ms, "milliseconds, such as 1")
    if name is not None and not name.strip():
        raise InputError("name is empty; expected what the encoder is to be called: leave it out for the folder's")


def _check_numpy(precision: str, exporter: str, *, torch_weights: bool, ort: bool) -> None:
    if precision == "int4":
        raise InputError("precision is 'int4', for which NumPy has no type; expected fp32, fp16, int8 or auto")
    if exporter != "torch":
        raise InputError(f"exporter is {exporter!r}, but nothing is traced for NumPy; leave it out")
    if torch_weights:
        raise InputError("torch weights are asked for, which the numpy backend has none of; expected backend 'onnx'")
    if ort:
        raise InputError("ort is asked for, which is made from ONNX, and backend is 'numpy'; expected backend 'onnx'")


def _check_choice(option: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise InputError(f"{option} is {given!r}; expected one of: {', '.join(known)}")


def _check_positive(option: str, given: float | None, unit: str) -> None:
    if given is not None and not (math.isfinite(given) and given > 0):
        raise InputError(f"{option} is {given}; expected a positive number of {unit}")
