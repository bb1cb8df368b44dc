"""The settings of a bundle: their limits, and one-line errors."""

from typing import Any, get_type_hints

import pytest
from edgeembed_exporters import BundleSettings
from edgeembed_exporters.bundle_settings import BundleKeywords
from edgeembed_exporters.precision import PRECISIONS, precision_names
from edgeembed_exporters.settings import spelled, spelled_as_options
from edgeembed_runtime import InputError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "int3"}, "precision is 'int3'; expected one of: fp32, fp16, int8, int4, auto"),
        ({"precision": 8}, "precision is 8; expected one of"),
        ({"precision": "auto"}, "expected max_size_mb, max_latency_ms or both"),
        ({"backend": "torch"}, "backend is 'torch'; expected one of: onnx, numpy"),
        (
            {"backend": "numpy", "precision": "int4"},
            "'int4', which the numpy backend does not run; expected one of: fp32",
        ),
        ({"min_cosine": 1.5}, "min_cosine is 1.5; expected a number from -1 to 1"),
        ({"min_original_rank": float("nan")}, "min_original_rank is nan; expected a number from -1 to 1"),
        ({"max_size_mb": -1}, "max_size_mb is -1; expected a number above 0, such as 8"),
        ({"max_latency_ms": float("inf")}, "max_latency_ms is inf; expected a number above 0"),
        ({"near_cosine": 0}, "near_cosine is 0; expected a number above 0 and at most 1"),
        ({"name": "  "}, "name is empty"),
        ({"dim": "128"}, "dim is '128'; expected an integer"),
        ({"ort": "yes"}, "ort is 'yes'; expected True or False"),
        ({"prompts": ["query: "]}, r"prompts is \['query: '\]; expected texts by name, such as {'query': 'query: '}"),
        ({"whiten": True}, "whiten is set without dim"),
        ({"precison": "int8"}, "precison is not a setting; expected one of: precision, role"),
    ],
)
def test_wrong_settings_raise_a_one_line_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        BundleSettings(**settings)
    assert "\n" not in str(raised.value)


def test_settings_cannot_be_changed() -> None:
    settings = BundleSettings(precision="int8")
    with pytest.raises(ValueError, match="frozen"):
        settings.precision = "int4"


def test_a_limit_replaces_that_of_each_precision() -> None:
    for name in ("min_cosine", "min_rank", "min_overlap", "min_label_agreement", "max_probability_difference"):
        for precision in precision_names():
            assert BundleSettings().limit(name, precision) == getattr(PRECISIONS[precision], name)
            assert BundleSettings(**{name: 0.5}).limit(name, precision) == 0.5  # type: ignore[arg-type]


def test_a_changed_copy_is_validated_and_keeps_the_other_settings() -> None:
    settings = BundleSettings(precision="int8", dim=8)
    assert settings.replace(whiten=True) == BundleSettings(precision="int8", dim=8, whiten=True)
    with pytest.raises(InputError, match="whiten is set without dim"):
        settings.replace(whiten=True, dim=None)


def test_keywords_have_the_names_and_types_of_the_settings() -> None:
    declared = get_type_hints(BundleSettings)
    assert get_type_hints(BundleKeywords) == {name: declared[name] for name in BundleSettings.model_fields}


def test_every_setting_says_what_it_does_and_what_it_may_be() -> None:
    for name in BundleSettings.model_fields:
        assert BundleSettings.help(name).endswith("."), name
        assert BundleSettings.expected(name), name


def test_messages_name_options_on_the_command_line() -> None:
    with spelled_as_options(), pytest.raises(InputError, match=r"^--whiten is set without --dim; expected --dim with"):
        BundleSettings(whiten=True)
    assert spelled("max_size_mb") == "max_size_mb"


@pytest.mark.parametrize("name", ["role", "min_rank", "trim_size", "dim"])
def test_settings_of_one_kind_of_model_are_an_error_for_another(name: str) -> None:
    values: dict[str, Any] = {"role": "semantic", "min_rank": 0.5, "trim_size": 90, "dim": 8}
    settings = BundleSettings(**{name: values[name]})
    settings.check_kind("encoder")
    with pytest.raises(InputError, match="which is for encoders; "):
        settings.check_kind("classifier")
