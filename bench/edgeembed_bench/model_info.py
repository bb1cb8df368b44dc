"""Properties of a subject's model: dimension, vocabulary size, parameters, package versions and installed sizes."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from edgeembed_runtime import Bundle
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.cmow.model_file import read_cmow_model

from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import Worker

_PACKED_LOOKUP = "GatherBlockQuantized"  # in tables of 4 bits, which pack two values into a byte
_LOOKUP_OPERATORS = ("Gather", _PACKED_LOOKUP, "Slice")  # Slice takes the first rows of the position table


@dataclass(frozen=True)
class Parameters:
    """Number of parameters of a model.

    Attributes:
        parameters: All parameters.
        embedding_parameters: Parameters of the token, position and token type embeddings. The projection of a
            factorized token embedding is a linear layer and is not counted here.
    """

    parameters: int
    embedding_parameters: int

    @property
    def inner_parameters(self) -> int:
        """Parameters outside the embedding tables."""
        return self.parameters - self.embedding_parameters


@dataclass(frozen=True)
class ModelInfo:
    """Properties of a subject's model and environment.

    Attributes:
        dimension: Dimension of an embedding.
        python: Version of the subject's Python.
        versions: Versions of the subject's packages.
        vocabulary_size: Vocabulary size of the tokenizer; None if unknown.
        parameters: Number of parameters; None if unknown.
        embedding_parameters: Number of parameters in the embedding tables; None if unknown.
        installed_bytes: Installed size of the subject's packages and their dependencies in bytes, by distribution; None
            if unknown, as for a function that belongs to no installed distribution.
        max_tokens: Length in tokens at which texts are truncated; None if unknown.
        space: Name of the embedding space that a bundle states; None if it states none, and for other subjects.
    """

    dimension: int
    python: str
    versions: dict[str, str]
    vocabulary_size: int | None
    parameters: int | None
    embedding_parameters: int | None
    installed_bytes: dict[str, int] | None
    max_tokens: int | None = None
    space: str | None = None


def read_model_info(subject: Subject, worker: Worker) -> ModelInfo:
    """Return the properties of a subject's model.

    Args:
        subject: The subject.
        worker: A process of the subject. Measure its cold start and memory before this call, which loads more modules.

    Raises:
        CheckError: If the process fails.
    """
    info = worker.info()
    space = None
    if subject.adapter == "bundle":  # the worker process counts the parameters of others
        bundle = Bundle.open(Path(subject.argument) if subject.argument else builtin_bundle())
        info |= asdict(count_bundle(bundle))
        space = bundle.space
    return ModelInfo(dimension=worker.dimension or 0, space=space, **info)


def count_bundle(bundle: Bundle) -> Parameters:
    """Return the number of parameters of a bundle.

    Args:
        bundle: An open bundle. If its graph adds the same token type embedding to every token, that vector does not
            count as an embedding parameter.
    """
    shapes = _cmow_tables(bundle) if bundle.backend == "numpy" else _graph_tables(bundle)
    return Parameters(bundle.num_parameters, sum(map(math.prod, shapes)))


def _cmow_tables(bundle: Bundle) -> Iterable[tuple[int, ...]]:
    model = read_cmow_model(bundle.read(bundle.model_file), bundle.dimension, bundle.model_file)
    for table in model.tables:
        yield table.vocabulary, table.width if table.basis is None else len(table.basis)


def _graph_tables(bundle: Bundle) -> Iterable[tuple[int, ...]]:
    import onnx

    graph = onnx.load_from_string(bundle.read(bundle.model_file)).graph
    tables = {node.input[0]: node.op_type for node in graph.node if node.op_type in _LOOKUP_OPERATORS}
    for tensor in graph.initializer:
        if tensor.name in tables and len(tensor.dims) == 2 and not tensor.name.endswith(".scales"):
            rows, width = tensor.dims
            yield rows, width * 2 if tables[tensor.name] == _PACKED_LOOKUP else width
