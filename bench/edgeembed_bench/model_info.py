"""What a subject tells of itself: its vectors, packages, parameters, and what installing it takes."""

from dataclasses import asdict, dataclass

from edgeembed_bench.parameters import count_parameters
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import Worker


@dataclass(frozen=True)
class ModelInfo:
    """What a subject tells of itself.

    Attributes:
        dimension: Numbers a vector.
        python: Version of its Python.
        versions: Of its packages.
        vocabulary: Tokens that its tokenizer knows; None if it does not tell.
        parameters: Numbers that the model holds; None if nobody counted.
        embedding_parameters: Those among them in tables of token, position and token type vectors; None likewise.
        footprint_bytes: What its packages and all that they need take on disk once installed, by distribution; None if
            unknown, as for a function of no installed distribution.
        max_tokens: Where it cuts a text; None if it does not tell.
    """

    dimension: int
    python: str
    versions: dict[str, str]
    vocabulary: int | None
    parameters: int | None
    embedding_parameters: int | None
    footprint_bytes: dict[str, int] | None
    max_tokens: int | None = None


def read_model_info(subject: Subject, worker: Worker) -> ModelInfo:
    """Ask a subject's process what the subject is made of.

    Args:
        subject: The subject.
        worker: A process of it whose start and memory were measured: looking takes both.

    Raises:
        CheckError: If the process fails.
    """
    told = worker.facts()
    counted = count_parameters(subject)
    if counted is not None:
        told |= asdict(counted)
    return ModelInfo(dimension=worker.dimension or 0, **told)
