"""What a bundle holds for ONNX Runtime: the graph, and the files by which other programs read it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import onnx

from edgeembed_exporters.fusion import fuse
from edgeembed_exporters.graph import build_graph, count_parameters, trace
from edgeembed_exporters.layout import write_configurations
from edgeembed_exporters.optimum import trace_with_optimum
from edgeembed_exporters.options import LEAST_BYTES, PRECISIONS, Precision, Tracer
from edgeembed_exporters.precision import at_precision
from edgeembed_exporters.source import Source
from edgeembed_exporters.tokenizer import bundle_tokenizer
from edgeembed_exporters.torch_weights import check_plain, write_torch_weights

Step = Callable[[str], AbstractContextManager[None]]

_TRACERS = {"torch": trace, "optimum": trace_with_optimum}
_FILES = {
    "fp32": "onnx/model.onnx",
    "fp16": "onnx/model_fp16.onnx",
    "int8": "onnx/model_quantized.onnx",
    "int4": "onnx/model_q4.onnx",
}


class OnnxFiles:
    """A model traced once, to be written at any precision.

    Args:
        source: The parts of the model.
        exporter: What traces the encoder.
        torch_weights: Whether they are written as well.
        calibration: Texts that int8 and int4 are calibrated on.
        step: Times a step.

    Raises:
        InputError: If torch cannot trace it, or transformers could not load the torch weights.
    """

    precisions = PRECISIONS

    def __init__(
        self, source: Source, exporter: Tracer, torch_weights: bool, calibration: Sequence[str], step: Step
    ) -> None:
        if torch_weights:
            check_plain(source.encoder)
        self._source, self._torch_weights, self._step = source, torch_weights, step
        self._graph = build_graph(source)
        with step("trace"):
            traced = _TRACERS[exporter](self._graph, source.max_seq_length)
        with step("fuse"):
            self._traced = fuse(traced, source.max_seq_length)
        tokenizer = bundle_tokenizer(source)
        self._calibration = [tokenizer.encode(text).ids for text in calibration]
        self.parameters = count_parameters(self._graph)

    def model_file(self, precision: Precision) -> str:
        """Give the model's path within a bundle: the names that transformers.js looks for."""
        return _FILES[precision]

    @property
    def torch_bytes(self) -> int:
        """The bytes of the torch weights, if they are written: those of the encoder's parameters."""
        if not self._torch_weights:
            return 0
        return sum(weight.numel() * weight.element_size() for weight in self._source.encoder.parameters())

    def least_bytes(self, precision: Precision) -> int:
        """Return fewer bytes than the graph has at a precision: those of its matrices alone."""
        constants = self._traced.graph.initializer
        matrices = [each for each in constants if each.data_type == onnx.TensorProto.FLOAT and len(each.dims) > 1]
        return int(sum(math.prod(each.dims) for each in matrices) * LEAST_BYTES[precision])

    def write(self, precision: Precision, folder: Path) -> None:
        """Write them into a bundle's folder."""
        with self._step("quantise"):
            model = at_precision(self._traced, precision, self._calibration)
        with self._step("write"):
            file = folder / self.model_file(precision)
            file.parent.mkdir()
            onnx.checker.check_model(model)
            onnx.save(model, file)
            if self._torch_weights:
                write_torch_weights(self._source, folder)
            named = None if self._torch_weights else self.model_file(precision)
            write_configurations(self._source, self._graph, folder, model_file=named)
