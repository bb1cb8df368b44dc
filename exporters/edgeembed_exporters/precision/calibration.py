"""What goes through a graph on real text, channel by channel."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

Array = npt.NDArray[np.float32]


def measure_reaches(
    model: onnx.ModelProto, activations: Sequence[str], token_ids: Iterable[list[int]]
) -> dict[str, Array]:
    """Give how far below and above zero every channel of some activations reaches.

    Args:
        model: The graph, in float32.
        activations: Names of tensors (..., channels) in it.
        token_ids: Texts, one unpadded row of token ids each.

    Returns:
        By activation: float32 (2, channels), the negated least value and the largest; either is negative where all
        values are on the other side.
    """
    reaches: dict[str, Array] = {}
    for name, rows in _run(model, activations, token_ids):
        reach = np.stack([-rows.min(axis=0), rows.max(axis=0)])
        reaches[name] = np.maximum(reaches[name], reach) if name in reaches else reach
    return reaches


def measure_moments(
    model: onnx.ModelProto, activations: Sequence[str], token_ids: Iterable[list[int]]
) -> dict[str, npt.NDArray[np.float64]]:
    """Give the second moments of some activations, X^T X over all tokens.

    Args:
        model: The graph, in float32.
        activations: Names of tensors (..., channels) in it.
        token_ids: Texts, one unpadded row of token ids each.

    Returns:
        By activation: float64 (channels, channels).
    """
    moments: dict[str, npt.NDArray[np.float64]] = {}
    for name, rows in _run(model, activations, token_ids):
        moment = (rows.T @ rows).astype(np.float64)
        moments[name] = moments[name] + moment if name in moments else moment
    return moments


def _run(
    model: onnx.ModelProto, activations: Sequence[str], token_ids: Iterable[list[int]]
) -> Iterator[tuple[str, Array]]:
    """Give each activation's rows (tokens, channels) of each text."""
    if not activations:
        return
    session = _session_with(model, activations)
    for row in [row for row in token_ids if row] or [[0]]:  # any token says more than none
        ids = np.array([row], dtype=np.int64)
        values = session.run(list(activations), {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        yield from ((name, value.reshape(-1, value.shape[-1])) for name, value in zip(activations, values, strict=True))


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
