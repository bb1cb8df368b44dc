"""How many numbers a bundle's model holds, and how many of them are in its embedding tables."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edgeembed_runtime import Bundle
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.cmow.safetensors import unpack_tensors

from edgeembed_bench.subjects import Subject

_PACKED = 2  # onnx.TensorProto.UINT8: two numbers of 4 bits
_LOOK_UPS = ("Gather", "GatherBlockQuantized", "Slice")  # positions are the beginning of their table


@dataclass(frozen=True)
class Parameters:
    """Numbers of a model.

    Attributes:
        parameters: All of them.
        embedding_parameters: Those in the tables that rows are looked up in: vectors of tokens, of positions and of
            token types. A projection that widens a narrow token table is a matrix product, and is not among them.
    """

    parameters: int
    embedding_parameters: int

    @property
    def inner_parameters(self) -> int:
        """Those in no embedding table."""
        return self.parameters - self.embedding_parameters


def count_parameters(subject: Subject) -> Parameters | None:
    """Count what a bundle holds; None for other subjects, which tell themselves where they can."""
    if subject.adapter != "bundle":
        return None
    return count_bundle(Bundle.open(Path(subject.argument) if subject.argument else builtin_bundle()))


def count_bundle(bundle: Bundle) -> Parameters:
    """Count what a bundle holds.

    Args:
        bundle: An open bundle. A token type that its graph adds to every token is a row, no table, and not counted
            among the embeddings.
    """
    shapes = _tensor_tables(bundle) if bundle.backend == "numpy" else _graph_tables(bundle)
    return Parameters(bundle.parameters, sum(map(math.prod, shapes)))


def _tensor_tables(bundle: Bundle) -> Iterable[tuple[int, ...]]:
    tensors = unpack_tensors(bundle.read(bundle.model_file), bundle.model_file).tensors
    vocabulary = _vocabulary(bundle)
    shapes = {name: tensor.shape for name, tensor in tensors.items() if not name.endswith(".scale")}
    return [shape for shape in shapes.values() if len(shape) == 2 and shape[0] == vocabulary]


def _vocabulary(bundle: Bundle) -> int:
    from tokenizers import Tokenizer

    return int(Tokenizer.from_buffer(bundle.read("tokenizer.json")).get_vocab_size())


def _graph_tables(bundle: Bundle) -> Iterable[tuple[int, ...]]:
    import onnx

    graph = onnx.load_from_string(bundle.read(bundle.model_file)).graph
    looked_up = {node.input[0] for node in graph.node if node.op_type in _LOOK_UPS}
    for tensor in graph.initializer:
        if tensor.name in looked_up and len(tensor.dims) == 2 and not tensor.name.endswith(".scales"):
            rows, width = tensor.dims
            yield rows, width * 2 if tensor.data_type == _PACKED and bundle.precision == "int4" else width
