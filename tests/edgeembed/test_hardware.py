"""bfloat16 is used where it was measured to be faster than float32, and does not fill the memory."""

import os
import runpy
import subprocess
import sys
from typing import Any

import pytest
import torch

from edgeembed import hardware
from edgeembed.hardware import attention_in_training, has_bf16, isolated_precision

CACHE_CAPACITY = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"


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


@pytest.mark.parametrize(("given", "expected"), [(None, "256"), ("7", "7")])
def test_onednn_cache_is_limited_unless_the_user_chose_a_size(
    monkeypatch: pytest.MonkeyPatch, given: str | None, expected: str
) -> None:
    monkeypatch.setenv(CACHE_CAPACITY, given or "")
    if given is None:
        monkeypatch.delenv(CACHE_CAPACITY)
    runpy.run_path(hardware.__file__)
    assert os.environ[CACHE_CAPACITY] == expected


@pytest.mark.slow
@pytest.mark.parametrize(("given", "expected"), [(None, "256"), ("7", "7")])
def test_onednn_cache_is_limited_in_a_process_that_trains(given: str | None, expected: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != CACHE_CAPACITY}
    code = f"import os, edgeembed.training.trainer; print(os.environ[{CACHE_CAPACITY!r}])"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | ({CACHE_CAPACITY: given} if given else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == expected


def test_attention_is_trained_with_matmuls_on_cpus_only() -> None:
    settings: Any = torch.backends.cuda
    before = settings.flash_sdp_enabled()
    with attention_in_training("cpu"):
        assert (settings.flash_sdp_enabled(), settings.math_sdp_enabled()) == (False, True)
    with attention_in_training("cuda"):
        assert settings.flash_sdp_enabled() == before
    assert settings.flash_sdp_enabled() == before


def test_a_trainers_precision_does_not_leak_into_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "fp16")
    with isolated_precision():
        assert "ACCELERATE_MIXED_PRECISION" not in os.environ
        os.environ["ACCELERATE_MIXED_PRECISION"] = "bf16"  # as a trainer does
    assert os.environ["ACCELERATE_MIXED_PRECISION"] == "fp16"
