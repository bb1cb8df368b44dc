"""What the machine at hand computes with."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

# oneDNN keeps what it made for each shape of a product. Training has hundreds of shapes, and in bfloat16 what it kept
# grew to many GB: few are enough. It reads this at its first product.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")

_TRAINERS_PRECISION = "ACCELERATE_MIXED_PRECISION"
_BF16_FEATURES = ("amx_bf16", "bf16", "sve_bf16")


def default_device() -> str:
    """Give the torch device to train and encode on: an accelerator where there is one, else the CPU."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def has_bf16(device: str) -> bool:
    """Tell whether bfloat16 is fast on a device: elsewhere it is slower than float32."""
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device == "cpu":
        capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
        return any(bool(capabilities.get(feature)) for feature in _BF16_FEATURES) or _has_fast_avx512_bf16(capabilities)
    return False


def _has_fast_avx512_bf16(capabilities: dict[str, object]) -> bool:
    # Measured, encoding and training: on AMD's three times as fast as float32, on Intel's without AMX's tiles slower.
    return bool(capabilities.get("avx512_bf16")) and str(capabilities.get("cpu_name", "")).startswith("AMD")


@contextmanager
def own_precision() -> Iterator[None]:
    """Let a trainer compute as its own settings say: each leaves its precision in the environment, to the next one."""
    before = os.environ.pop(_TRAINERS_PRECISION, None)
    try:
        yield
    finally:
        os.environ.pop(_TRAINERS_PRECISION, None)
        if before is not None:
            os.environ[_TRAINERS_PRECISION] = before


def attention_in_training(device: str) -> AbstractContextManager[None]:
    """Choose how attentions are computed while a student is trained on a device.

    On a processor torch takes a fused kernel whose way back multiplies head by head, slower than plain products of
    batches.
    """
    return sdpa_kernel(SDPBackend.MATH) if device == "cpu" else nullcontext()
