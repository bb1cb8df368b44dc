"""Device and numeric precision of training and encoding."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

# oneDNN caches a primitive for each shape of a matmul. By default it keeps 1,024, which took many GB in bfloat16. A
# training has at most some hundred shapes (students/length_groups.py). oneDNN reads this variable at its first matmul.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "256")

_ACCELERATE_PRECISION = "ACCELERATE_MIXED_PRECISION"
_BF16_FEATURES = ("amx_bf16", "bf16", "sve_bf16")


def default_device() -> str:
    """Return the torch device to train and encode on: an accelerator if there is one, else the CPU."""
    if torch.cuda.is_available():
        return "cuda"
    # torch connects no processes on Apple's GPU.
    return "mps" if torch.backends.mps.is_available() and "RANK" not in os.environ else "cpu"


def has_bf16(device: str) -> bool:
    """Return whether bfloat16 is faster than float32 on a device."""
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device == "cpu":
        capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
        return any(bool(capabilities.get(feature)) for feature in _BF16_FEATURES) or _has_fast_avx512_bf16(capabilities)
    return False


def _has_fast_avx512_bf16(capabilities: dict[str, object]) -> bool:
    # Measured, encoding and training: three times as fast as float32 on AMD, slower on Intel without AMX tiles.
    return bool(capabilities.get("avx512_bf16")) and str(capabilities.get("cpu_name", "")).startswith("AMD")


@contextmanager
def isolated_precision() -> Iterator[None]:
    """Run a trainer without the mixed precision that an earlier trainer left in the environment, and leave none."""
    before = os.environ.pop(_ACCELERATE_PRECISION, None)
    try:
        yield
    finally:
        os.environ.pop(_ACCELERATE_PRECISION, None)
        if before is not None:
            os.environ[_ACCELERATE_PRECISION] = before


def attention_in_training(device: str) -> AbstractContextManager[None]:
    """Return a context manager that selects the faster of torch's attention kernels for training on a device.

    On a CPU, the fused kernel loops over the heads in its backward pass; batched matmuls are faster.
    """
    return sdpa_kernel(SDPBackend.MATH) if device == "cpu" else nullcontext()
