"""The settings of an export: their limits, and one-line errors."""

from typing import Any

import pytest
from edgeembed_exporters import ExportConfig, Provenance
from edgeembed_exporters.config import MIN_COSINE, PRECISIONS
from edgeembed_runtime import InputError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "int3"}, "precision is 'int3'; expected one of: fp32, fp16, int8, int4, auto"),
        ({"precision": 8}, "precision is 8; expected one of"),
        ({"precision": "auto"}, "expected max_size_mb, max_latency_ms or both"),
        ({"backend": "torch"}, "backend is 'torch'; expected one of: onnx, numpy"),
        ({"min_cosine": 1.5}, "min_cosine is 1.5; expected a number from -1 to 1"),
        ({"min_original_rank": float("nan")}, "min_original_rank is nan; expected a number from -1 to 1"),
        ({"max_size_mb": -1}, "max_size_mb is -1; expected a positive number of megabytes"),
        ({"max_latency_ms": float("inf")}, "max_latency_ms is inf; expected a positive number of milliseconds"),
        ({"near_cosine": 0}, "near_cosine is 0; expected a cosine above 0 and at most 1"),
        ({"name": "  "}, "name is empty"),
        ({"dim": "128"}, "dim is '128'; expected"),
        ({"ort": "yes"}, "ort is 'yes'; expected"),
        ({"prompts": ["query: "]}, r"prompts is \['query: '\]; expected a text by prompt name"),
        ({"provenance": {"teacher": "big"}}, "provenance is .*; expected an instance of Provenance"),
        ({"whiten": True}, "whiten is set without dim"),
        ({"precison": "int8"}, "precison is not a setting of an export; expected one of: precision, role"),
    ],
)
def test_wrong_settings_raise_a_one_line_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        ExportConfig(**settings)
    assert "\n" not in str(raised.value)


def test_settings_cannot_be_changed() -> None:
    config = ExportConfig(precision="int8", provenance=Provenance(license="mit"))
    with pytest.raises(ValueError, match="frozen"):
        config.precision = "int4"


def test_every_precision_has_a_default_minimum_cosine() -> None:
    assert [ExportConfig().min_cosine_at(precision) for precision in PRECISIONS] == list(MIN_COSINE.values())
    assert {ExportConfig(min_cosine=0.5).min_cosine_at(precision) for precision in PRECISIONS} == {0.5}
