"""Statistics of activations on calibration text: ranges of channels, second moments."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from edgeembed_exporters.onnx.graph import copy_model

Array = npt.NDArray[np.float32]


def measure_ranges(
    model: onnx.ModelProto, activations: Sequence[str], token_ids: Iterable[list[int]]
) -> dict[str, Array]:
    """Measure the range of every channel of some activations.

    Args:
        model: A float32 model.
        activations: Names of tensors (..., channels).
        token_ids: Calibration text: the unpadded token ids of each text.

    Returns:
        For each activation float32 (2, channels): the negated minimum and the maximum of each channel.
    """
    ranges: dict[str, Array] = {}
    for name, rows in _activation_rows(model, activations, token_ids):
        found = np.stack([-rows.min(axis=0), rows.max(axis=0)])
        ranges[name] = np.maximum(ranges[name], found) if name in ranges else found
    return ranges


def measure_moments(
    model: onnx.ModelProto, activations: Sequence[str], token_ids: Iterable[list[int]]
) -> dict[str, npt.NDArray[np.float64]]:
    """Measure the second moments X^T X of some activations, summed over all tokens.

    Args:
        model: A float32 model.
        activations: Names of tensors (..., channels).
        token_ids: Calibration text: the unpadded token ids of each text.

    Returns:
        For each activation float64 (channels, channels).
    """
    moments: dict[str, npt.NDArray[np.float64]] = {}
    for name, rows in _activation_rows(model, activations, token_ids):
        moment = (rows.T @ rows).astype(np.float64)
        moments[name] = moments[name] + moment if name in moments else moment
    return moments


def _activation_rows(
    model: onnx.ModelProto, activations: Sequence[str], token_ids: Iterable[list[int]]
) -> Iterator[tuple[str, Array]]:
    """Yield the name and the rows (tokens, channels) of each activation, text by text."""
    if not activations:
        return
    session = _session_with_outputs(model, activations)
    texts = [row for row in token_ids if row] or [[0]]  # without calibration text, one token is better than nothing
    for row in texts:
        ids = np.array([row], dtype=np.int64)
        values = session.run(list(activations), {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        yield from ((name, value.reshape(-1, value.shape[-1])) for name, value in zip(activations, values, strict=True))


def _session_with_outputs(model: onnx.ModelProto, activations: Sequence[str]) -> Any:
    # Imported late: edgeembed_runtime turns ONNX Runtime's telemetry off and must be imported before it.
    import onnxruntime

    probe = copy_model(model)
    for name in activations:
        probe.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
