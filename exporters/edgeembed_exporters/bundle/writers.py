"""Write the model files of a bundle at any precision: an ONNX graph, or a tensor file for NumPy."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import onnx
import torch
from edgeembed_runtime import Bundle
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.pipeline import Text
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

from edgeembed_exporters.bundle.hub_files import bundle_tokenizer, write_configurations
from edgeembed_exporters.bundle.manifest import update_file_record
from edgeembed_exporters.cmow import MatrixTensors, pack
from edgeembed_exporters.model_spec import ModelSpec
from edgeembed_exporters.onnx.ort_format import convert_to_ort
from edgeembed_exporters.onnx.tracing import SentenceGraph, count_parameters
from edgeembed_exporters.precision import PRECISIONS
from edgeembed_exporters.quantization.blockwise import find_row_levels
from edgeembed_exporters.quantization.calibration import with_short_texts
from edgeembed_exporters.settings import spelled

_TENSOR_FILE = "model.safetensors"
# Embeddings are pooled from the token embeddings, so the pooler of transformers is never used.
_UNUSED_WEIGHTS = "pooler."
_PROBED_ROWS = 1_000
_LEVEL_BITS = 4


class GraphWriter:
    """Quantizes a graph at any precision.

    Args:
        graph: The graph as a torch module.
        trace: Returns the graph in ONNX, float32. It is called once, and not before a precision may fit.
        spec: The parts of the model.
        calibration: Texts, or pairs of texts, for calibration.
    """

    def __init__(
        self, graph: nn.Module, trace: Callable[[], onnx.ModelProto], spec: ModelSpec, calibration: Sequence[Text]
    ) -> None:
        self.num_parameters = count_parameters(graph)
        self._graph, self._trace = graph, trace
        tokenizer = bundle_tokenizer(spec)
        pairs = [(text,) if isinstance(text, str) else text for text in with_short_texts(calibration)]
        self._calibration_ids = [tokenizer.encode(*texts).ids for texts in pairs]

    @property
    def extra_size_bytes(self) -> int:
        """The size of files that are the same at every precision."""
        return 0

    def model_file(self, precision: str) -> str:
        """Return the path of the model in a bundle."""
        return PRECISIONS[precision].file

    def min_size_bytes(self, precision: str) -> int:
        """Return a lower bound of the size, known before the graph is traced: that of the matrices."""
        matrices = [weight.detach() for weight in self._graph.parameters() if weight.ndim > 1]
        return int(sum(matrix.numel() * _min_bytes_per_weight(matrix, precision) for matrix in matrices))

    def prepare(self) -> None:
        """Trace the graph, once for all precisions."""
        _ = self._traced

    @cached_property
    def _traced(self) -> onnx.ModelProto:
        return self._trace()

    def quantize(self, precision: str) -> bytes:
        """Return the content of the model file at a precision."""
        model = PRECISIONS[precision].quantize(self._traced, self._calibration_ids)
        onnx.checker.check_model(model)
        return cast("bytes", model.SerializeToString())

    def write(self, content: bytes, precision: str, folder: Path) -> None:
        """Write the model."""
        file = folder / self.model_file(precision)
        file.parent.mkdir()
        file.write_bytes(content)


class OnnxWriter(GraphWriter):
    """Writes an encoder's graph, with the files by which other libraries load it.

    Args:
        graph: The graph as a torch module.
        trace: As for `GraphWriter`.
        spec: The parts of the model.
        calibration: Texts for calibration.
        torch_weights: Whether to write the encoder's torch weights as well.
    """

    def __init__(
        self,
        graph: SentenceGraph,
        trace: Callable[[], onnx.ModelProto],
        spec: ModelSpec,
        calibration: Sequence[str],
        *,
        torch_weights: bool,
    ) -> None:
        super().__init__(graph, trace, spec, calibration)
        self._spec, self._sentence_graph, self._torch_weights = spec, graph, torch_weights

    @property
    def extra_size_bytes(self) -> int:
        """The size of the torch weights, if they are written."""
        if not self._torch_weights:
            return 0
        return sum(weight.numel() * weight.element_size() for weight in self._spec.encoder.parameters())

    def write(self, content: bytes, precision: str, folder: Path) -> None:
        """Write the model, its configuration files, and the torch weights if they are asked for."""
        super().write(content, precision, folder)
        if self._torch_weights:
            _write_torch_weights(self._spec.encoder, folder)
        loaded_file = None if self._torch_weights else self.model_file(precision)
        write_configurations(self._spec, self._sentence_graph, folder, model_file=loaded_file)


class NumpyWriter:
    """Writes a matrix student or a static embedding as a tensor file.

    Args:
        tensors: Its tensors in float32.
    """

    def __init__(self, tensors: MatrixTensors) -> None:
        self._tensors = tensors
        self.num_parameters = tensors.num_parameters

    @property
    def extra_size_bytes(self) -> int:
        """The size of other files: none."""
        return 0

    def model_file(self, precision: str) -> str:  # noqa: ARG002
        """Return the path of the model in a bundle."""
        return _TENSOR_FILE

    def min_size_bytes(self, precision: str) -> int:
        """Return a lower bound of the size, known before quantization."""
        return self._tensors.min_size_bytes(PRECISIONS[precision])

    def prepare(self) -> None:
        """Do nothing: there is no graph to trace."""

    def quantize(self, precision: str) -> bytes:
        """Return the content of the tensor file at a precision."""
        return pack(self._tensors, PRECISIONS[precision])

    def write(self, content: bytes, precision: str, folder: Path) -> None:
        """Write the tensor file."""
        (folder / self.model_file(precision)).write_bytes(content)


def check_torch_weights(encoder: Any) -> None:
    """Check that transformers can load an encoder's weights again.

    Raises:
        InputError: If it is not a class of transformers, or its weights differ from those that its configuration
            describes; the message names one.
    """
    name = type(encoder).__name__
    if not isinstance(encoder, PreTrainedModel):
        raise InputError(
            f"{spelled('torch_weights')} is set, and the encoder is a {name}; expected an encoder of transformers"
        )
    with torch.device("meta"):
        plain = _weight_shapes(type(encoder)(encoder.config))
    given = _weight_shapes(encoder)
    differing = sorted(key for key in given.keys() | plain.keys() if given.get(key) != plain.get(key))
    if differing := [key for key in differing if not key.startswith(_UNUSED_WEIGHTS)]:
        raise InputError(
            f"{spelled('torch_weights')} is set, and {differing[0]} is not as in {name} of transformers; expected an "
            "encoder that transformers builds from its configuration: load this model from its own folder"
        )


def add_ort(bundle: str | os.PathLike[str]) -> Path:
    """Add the model in ONNX Runtime's format, and the list of operators and types that it needs.

    Args:
        bundle: The bundle's folder; its files must be the exported ones. Existing files of the two names are replaced.

    Returns:
        The model in ONNX Runtime's format.

    Raises:
        InputError: If the folder is not a bundle, its backend is not onnx, or it cannot be written.
        VerificationError: If a file is not the exported one.
    """
    folder = Path(bundle)
    opened = Bundle.open(folder, verify=True)
    if opened.backend != "onnx":
        raise InputError(f"the backend of {folder} is {opened.backend}; expected onnx: export the model again")
    files = convert_to_ort(folder / opened.model_file)
    for file in files:
        update_file_record(folder, file.relative_to(folder).as_posix())
    return files[0]


def _min_bytes_per_weight(matrix: torch.Tensor, precision: str) -> float:
    """Return a lower bound: tables that were trained with 16 levels a row keep 4 bits at some precisions."""
    chosen = PRECISIONS[precision]
    is_probed = chosen.keeps_levels and matrix.ndim == 2
    has_levels = is_probed and find_row_levels(matrix[:_PROBED_ROWS].numpy(), bits=_LEVEL_BITS) is not None
    return (_LEVEL_BITS if has_levels else chosen.bits) / 8


def _weight_shapes(encoder: Any) -> dict[str, tuple[int, ...]]:
    return {key: tuple(values.shape) for key, values in encoder.state_dict().items()}


def _write_torch_weights(encoder: Any, folder: Path) -> None:
    """Write model.safetensors in the encoder's own precision, and a config.json that is written over."""
    shown = is_progress_bar_enabled()
    disable_progress_bar()
    try:
        encoder.save_pretrained(folder)
    finally:
        if shown:
            enable_progress_bar()
