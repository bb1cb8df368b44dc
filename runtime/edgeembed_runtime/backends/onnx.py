"""Run a model with ONNX Runtime, one text at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

from edgeembed_runtime.concurrency import ForkGate
from edgeembed_runtime.errors import BundleError

if TYPE_CHECKING:
    import numpy.typing as npt

_INPUTS = {"input_ids", "attention_mask"}
# If another thread runs a session during a fork, a lock of onnxruntime would stay locked in the child.
_GATE = ForkGate()
_INT64 = np.dtype(np.int64)  # a dtype object: NumPy would create one from the type in every call

# The package sets ORT_DISABLE_TELEMETRY. This call is for applications that imported onnxruntime earlier, and for
# older versions on Windows.
onnxruntime.disable_telemetry_events()


class OnnxBackend:
    """An ONNX session that runs one text at a time, without padding.

    Texts are never batched: dynamically quantized graphs scale their activations over the whole batch, so that a
    text's embedding would depend on the other texts.

    Args:
        model: The ONNX file's bytes: int64 input_ids, attention_mask (batch, tokens) -> a float32 output
            (batch, size). Or its path, which takes less memory, because a session keeps the bytes it is given.
            `onnx_graph.check_graph_file` checks for control flow and external weights; this class does not.
        output: The name of the output and its size: the dimension of an embedding, or the number of labels.
        where: The file's path, for messages.
        fold: Whether to fold constants at load time, such as casts of fp16 weights to fp32.

    Raises:
        BundleError: If the file is not such a graph.
    """

    def __init__(self, model: bytes | str, output: tuple[str, int], where: str, *, fold: bool = False) -> None:
        name, size = output
        self._where = where
        self._outputs, self._shape = [name], (size,)
        self._session = _session(model, where, fold=fold)
        _check_graph(self._session, where, name, size)
        # Attention masks are slices of this row, which is replaced when a longer text arrives.
        self._ones = np.ones((1, 64), dtype=np.int64)

    def run(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Return the model's output for one text.

        Args:
            token_ids: The token ids of the text, including special tokens.

        Returns:
            (size,) float32; the graph normalizes embeddings.

        Raises:
            BundleError: If the model cannot run on these token ids.
        """
        tokens, ones = len(token_ids), self._ones
        if tokens > ones.shape[1]:
            ones = self._ones = np.ones((1, 2 * tokens), dtype=np.int64)
        feeds = {"input_ids": np.array([token_ids], _INT64), "attention_mask": ones[:, :tokens]}
        try:
            vector: npt.NDArray[np.float32] = _GATE.run(self._session.run, self._outputs, feeds)[0][0]
        except Exception as error:  # onnxruntime's errors have no common base
            raise BundleError(f"{self._where} cannot run: {_first_line(error)}; export the bundle again") from error
        if vector.shape != self._shape:  # the declared shape may differ
            raise BundleError(
                f"{self._where} returns a vector of shape {vector.shape}, expected {self._shape}; "
                "export the bundle again"
            )
        return vector


def _session(model: bytes | str, where: str, *, fold: bool) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # fastest for a single text; many texts run on several threads of this package
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The arena keeps the memory of the longest text, which max_seq_length bounds. Without it, memory use depends on
    # the C library; memory patterns for every length need more. docs/results/runtime.md has the measurements.
    options.enable_cpu_mem_arena = True
    options.enable_mem_pattern = False
    # The exporter has optimized the graph: doing it again takes a quarter of the load time and made no graph
    # measurably faster (python -m experiments.runtime.session_options).
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_BASIC if fold else levels.ORT_DISABLE_ALL
    # Planning which tensors share memory takes a third of the load time and saves nothing.
    options.enable_mem_reuse = False
    # The file was checked as ONNX with all weights inside, so no other format or file may be loaded.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", os.devnull)
    options.log_severity_level = 4  # errors reach the caller as exceptions, not stderr
    try:
        # The fallback would print the error on stdout, and try the same again.
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"], enable_fallback=0)
    except Exception as error:  # onnxruntime's errors have no common base
        raise BundleError(f"{where} is not a model: {_first_line(error)}; export the bundle again") from error
    return session


def _check_graph(session: Any, where: str, output: str, size: int) -> None:
    try:
        inputs = {node.name for node in session.get_inputs()}
        outputs = {node.name: (node.type, node.shape) for node in session.get_outputs()}
    except UnicodeDecodeError as error:
        raise BundleError(f"{where} has names that are not valid text; export the bundle again") from error
    if inputs != _INPUTS:
        raise BundleError(f"{where} takes {_listed(inputs)}, expected {_listed(_INPUTS)}; export the bundle again")
    if output not in outputs:
        raise BundleError(f"{where} returns {_listed(outputs)}, expected {output!r}; export the bundle again")
    kind, shape = outputs[output]
    if kind != "tensor(float)":
        raise BundleError(f"{where} returns a {kind}, expected a tensor(float); export the bundle again")
    if len(shape) != 2 or (isinstance(shape[1], int) and shape[1] != size):
        raise BundleError(f"{where} returns shape {shape}, expected (batch, {size}); export the bundle again")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name[:80]) for name in sorted(names)[:9])


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].removeprefix("[ONNXRuntimeError] : ")
