"""How large a graph's activations become, channel by channel, on real text."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

Peaks = dict[str, npt.NDArray[np.float32]]


def measure_peaks(model: onnx.ModelProto, activations: Sequence[str], token_ids: Iterable[list[int]]) -> Peaks:
    """Give the largest absolute value of every channel of some activations.

    Args:
        model: The graph, in float32.
        activations: Names of tensors (..., channels) in it.
        token_ids: Texts, one unpadded row of token ids each.

    Returns:
        By activation: float32 (channels,).
    """
    session = _session_with(model, activations)
    peaks: Peaks = {}
    for row in filter(None, token_ids):
        ids = np.array([row], dtype=np.int64)
        values = session.run(list(activations), {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        for name, value in zip(activations, values, strict=True):
            peak = np.abs(value).reshape(-1, value.shape[-1]).max(axis=0)
            peaks[name] = np.maximum(peaks[name], peak) if name in peaks else peak
    return peaks


def _session_with(model: onnx.ModelProto, activations: Sequence[str]) -> Any:
    # Imported here because edgeembed_runtime turns its telemetry off, and must have been imported before it.
    import onnxruntime

    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    for name in activations:
        probe.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
