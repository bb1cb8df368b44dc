"""bfloat16 is used where it was measured to be faster than float32, and does not fill the memory."""

import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from edgeembed.hardware import attention_in_training, has_bf16, own_precision


@pytest.mark.parametrize(
    ("capabilities", "fast"),
    [
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True}, True),
        ({"cpu_name": "AMD EPYC", "avx512_bf16": False}, False),
        ({"cpu_name": "Intel(R) Xeon(R)", "avx512_bf16": True}, False),
        ({"cpu_name": "Intel(R) Xeon(R)", "avx512_bf16": True, "amx_bf16": True}, True),
        ({"avx512_bf16": True}, False),
        ({"bf16": True}, True),
        ({}, False),
    ],
)
def test_cpus_compute_in_bfloat16_where_that_is_faster(
    monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, object], fast: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert has_bf16("cpu") is fast


def test_devices_that_were_not_measured_compute_in_float32() -> None:
    assert not has_bf16("mps")


@pytest.mark.parametrize(("given", "wanted"), [(None, "32"), ("7", "7")])
def test_products_of_many_shapes_do_not_fill_the_memory(given: str | None, wanted: str) -> None:
    name = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
    surroundings = {key: value for key, value in os.environ.items() if key != name} | ({name: given} if given else {})
    code = f"import os, edgeembed.training; print(os.environ[{name!r}])"
    found = subprocess.run([sys.executable, "-c", code], env=surroundings, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == wanted


def test_attentions_are_trained_as_plain_products_on_a_processor_alone() -> None:
    settings: Any = torch.backends.cuda
    before = settings.flash_sdp_enabled()
    with attention_in_training("cpu"):
        assert (settings.flash_sdp_enabled(), settings.math_sdp_enabled()) == (False, True)
    with attention_in_training("cuda"):
        assert settings.flash_sdp_enabled() == before
    assert settings.flash_sdp_enabled() == before


def test_a_trainer_leaves_its_precision_to_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "fp16")
    with own_precision():
        assert "ACCELERATE_MIXED_PRECISION" not in os.environ
        os.environ["ACCELERATE_MIXED_PRECISION"] = "bf16"  # as a trainer does
    assert os.environ["ACCELERATE_MIXED_PRECISION"] == "fp16"
