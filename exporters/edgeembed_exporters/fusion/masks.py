"""What is added to attention scores, told by running it: the padding's mask, or a bias of another kind."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

_BATCH = 2
_MASKED = -1e4


class Masks:
    """The biases of a graph's attentions.

    Args:
        model: The graph: input_ids and attention_mask in.
        biases: Names of tensors that are added to scores.
        tokens: The most tokens that the graph takes: a model that limits how far a token looks does so from some
            length on.
    """

    def __init__(self, model: onnx.ModelProto, biases: Sequence[str], tokens: int) -> None:
        self._mask = np.ones((_BATCH, tokens), dtype=np.bool_)
        self._mask[1, (tokens + 1) // 2 :] = False
        self._values = _probe(model, biases, self._mask) if biases else {}

    def are_known(self, biases: Iterable[str]) -> bool:
        """Tell whether MultiHeadAttention takes each as it is."""
        return all(self.is_padding(name) or self._is_whole(name) for name in biases)

    def is_padding(self, name: str) -> bool:
        """Tell whether a bias does nothing but keep tokens from attending to padding."""
        values = self._values[name]
        if values.ndim != 4 or (values.shape[0], values.shape[3]) != self._mask.shape:
            return False
        hidden = np.broadcast_to(~self._mask[:, None, None, :], (_BATCH, *values.shape[1:]))
        return bool((values[hidden] <= _MASKED).all() and (values[~hidden] == 0).all())

    def _is_whole(self, name: str) -> bool:
        values = self._values[name]
        return values.ndim == 4 and values.shape[2:] == (self._mask.shape[1],) * 2


def _probe(model: onnx.ModelProto, names: Sequence[str], mask: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[Any]]:
    # Imported here because edgeembed_runtime turns its telemetry off, and must have been imported before it.
    import onnxruntime

    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    # The ids are those of one token: what hides some tokens by their ids must not look like the padding.
    feeds = {"input_ids": np.ones(mask.shape, dtype=np.int64), "attention_mask": mask.astype(np.int64)}
    return dict(zip(names, session.run(list(names), feeds), strict=True))
