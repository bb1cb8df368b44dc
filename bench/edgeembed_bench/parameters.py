"""How many numbers a bundle's model holds, and how many of them are vectors of tokens."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime import Bundle
from edgeembed_runtime.matrix.safetensors import unpack_tensors
from edgeembed_runtime.shipped import shipped_bundle

from edgeembed_bench.subjects import Subject

_PACKED = 2  # onnx.TensorProto.UINT8: two numbers of 4 bits


@dataclass(frozen=True)
class Parameters:
    """Numbers of a model.

    Attributes:
        parameters: All of them.
        embedding_parameters: Those in the table of token vectors, a projection after it not counted.
    """

    parameters: int
    embedding_parameters: int


def count_parameters(subject: Subject) -> Parameters | None:
    """Count what a bundle holds; None for other subjects, which tell themselves where they can."""
    if subject.adapter != "bundle":
        return None
    bundle = Bundle.open(Path(subject.argument) if subject.argument else shipped_bundle())
    vocabulary = _vocabulary(bundle)
    shapes = _tensor_file(bundle) if bundle.backend == "numpy" else _graph(bundle)
    tables = (math.prod(shape) for name, shape in shapes if _is_table(name, shape, vocabulary))
    return Parameters(bundle.parameters, sum(tables))


def _is_table(name: str, shape: tuple[int, ...], vocabulary: int) -> bool:
    return len(shape) == 2 and shape[0] == vocabulary and not name.endswith((".scales", ".scale"))


def _vocabulary(bundle: Bundle) -> int:
    from tokenizers import Tokenizer

    return int(Tokenizer.from_buffer(bundle.read("tokenizer.json")).get_vocab_size())


def _graph(bundle: Bundle) -> Iterable[tuple[str, tuple[int, ...]]]:
    import onnx

    graph = onnx.load_from_string(bundle.read(bundle.model_file)).graph
    for tensor in graph.initializer:
        *rest, last = tensor.dims or [1]
        yield tensor.name, (*rest, last * 2 if tensor.data_type == _PACKED and bundle.precision == "int4" else last)


def _tensor_file(bundle: Bundle) -> Iterable[tuple[str, tuple[int, ...]]]:
    tensors = unpack_tensors(bundle.read(bundle.model_file), bundle.model_file).tensors
    return [(name, tensor.shape) for name, tensor in tensors.items()]
