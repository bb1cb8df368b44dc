"""A model in ONNX Runtime, one row at a time."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from edgeembed_runtime.errors import BundleError
from edgeembed_runtime.forking import ForkGate

_INPUTS = {"input_ids", "attention_mask"}
_OUTPUT = "sentence_embedding"
_OUTPUTS = [_OUTPUT]
# In a child that was forked while another thread ran a session, one of onnxruntime's locks would stay locked.
_GATE = ForkGate()
_INT64 = np.dtype(np.int64)  # numpy would make one of the type each time

# The package sets ORT_DISABLE_TELEMETRY; this is for an application that had imported onnxruntime by then, and for
# older ones on Windows.
onnxruntime.disable_telemetry_events()


class OnnxBackend:
    """A sentence encoder's graph, run without padding.

    Rows are never batched: dynamically quantized graphs scale their activations over the whole batch, so a
    text's vector would depend on its neighbours.

    Args:
        model: The ONNX file's bytes: int64 input_ids, attention_mask (batch, tokens) -> float32 sentence_embedding
            (batch, dimension). Or its path, which takes less memory: the session keeps bytes. Neither is checked here
            for control flow and weights in other files; `onnx_graph.check_graph_file` does.
        dimension: The length of a vector.
        where: The file's path, for messages.
        fold: Whether nodes of constants alone are run once, now: those that widen weights of half precision.

    Raises:
        BundleError: If the file is no such graph.
    """

    def __init__(self, model: bytes | str, dimension: int, where: str, *, fold: bool = False) -> None:
        self._where = where
        self._shape = (dimension,)
        self._session = _session(model, where, fold=fold)
        _check_graph(self._session, where, dimension)
        # A mask is the beginning of this row, which is made anew only for the longest text so far.
        self._ones = np.ones((1, 64), dtype=np.int64)

    def embed(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Give the vector of one text.

        Args:
            token_ids: The text's tokens, special ones included.

        Returns:
            (dimension,) float32, as the graph gives it: of unit length.

        Raises:
            BundleError: If the model cannot run on these tokens.
        """
        tokens, ones = len(token_ids), self._ones
        if tokens > ones.shape[1]:
            ones = self._ones = np.ones((1, 2 * tokens), dtype=np.int64)
        feeds = {"input_ids": np.array([token_ids], _INT64), "attention_mask": ones[:, :tokens]}
        try:
            vector: npt.NDArray[np.float32] = _GATE.run(self._session.run, _OUTPUTS, feeds)[0][0]
        except Exception as error:  # onnxruntime's errors have no common base
            raise BundleError(f"{self._where} cannot run: {_first_line(error)}; export the bundle again") from error
        if vector.shape != self._shape:  # the graph's own word on it binds nobody
            raise BundleError(
                f"{self._where} gives a vector of shape {vector.shape}, expected {self._shape}; export the bundle again"
            )
        return vector


def _session(model: bytes | str, where: str, *, fold: bool) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the fastest for one text; many are run on several threads of ours
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The arena keeps what the longest text needed, which the limit bounds. Without it, memory swings as the C library
    # sees fit; with a pattern planned for every length it is higher. docs/results/runtime.md has the figures.
    options.enable_cpu_mem_arena = True
    options.enable_mem_pattern = False
    # The exporter simplified the graph: to try again takes a quarter of the time to load, and made none of its graphs
    # measurably faster (python -m experiments.session_options).
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_BASIC if fold else levels.ORT_DISABLE_ALL
    # To plan which results may share memory takes a third of the time to load, and saves nothing.
    options.enable_mem_reuse = False
    # The checks of the file were those of ONNX, and its weights are inside it.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
    options.log_severity_level = 4  # errors reach the caller as exceptions, not stderr
    try:
        # Its fallback would print what went wrong on stdout, and try the same again.
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"], enable_fallback=0)
    except Exception as error:  # onnxruntime's errors have no common base
        raise BundleError(f"{where} is no model: {_first_line(error)}; export the bundle again") from error
    return session


def _check_graph(session: Any, where: str, dimension: int) -> None:
    try:
        inputs = {node.name for node in session.get_inputs()}
        outputs = {node.name: (node.type, node.shape) for node in session.get_outputs()}
    except UnicodeDecodeError as error:
        raise BundleError(f"{where} has names that are no text; export the bundle again") from error
    if inputs != _INPUTS:
        raise BundleError(f"{where} takes {_listed(inputs)}, expected {_listed(_INPUTS)}; export the bundle again")
    if _OUTPUT not in outputs:
        raise BundleError(f"{where} gives {_listed(outputs)}, expected {_OUTPUT!r}; export the bundle again")
    kind, shape = outputs[_OUTPUT]
    if kind != "tensor(float)":
        raise BundleError(f"{where} gives a {kind}, expected a tensor(float); export the bundle again")
    if len(shape) != 2 or (isinstance(shape[1], int) and shape[1] != dimension):
        raise BundleError(f"{where} gives shape {shape}, expected (batch, {dimension}); export the bundle again")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name[:80]) for name in sorted(names)[:9])


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].removeprefix("[ONNXRuntimeError] : ")
